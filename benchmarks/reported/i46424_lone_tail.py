"""Scenario ``reported/i46424-lone-tail``."""

from hybridwatch.watch.suite import Suite


class I46424LoneTail(Suite, scenario="reported/i46424-lone-tail"):
    """Does the engine survive a step in which nobody has drafts?"""
