"""Scenario ``gpu/nemotron-h-mtp``."""

from hybridwatch.watch.suite import Suite


class NemotronHMtp(Suite, scenario="gpu/nemotron-h-mtp"):
    """How fast does Nemotron-H verify its own drafts, and how often does its host wait?"""
