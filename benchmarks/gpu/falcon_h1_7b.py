"""Scenario ``gpu/falcon-h1-7b``."""

from hybridwatch.watch.suite import Suite


class FalconH17b(Suite, scenario="gpu/falcon-h1-7b"):
    """How fast is Falcon-H1 7B, and how often does its host wait for the GPU?"""
