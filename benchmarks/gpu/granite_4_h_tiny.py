"""Scenario ``gpu/granite-4-h-tiny``."""

from hybridwatch.watch.suite import Suite


class Granite4HTiny(Suite, scenario="gpu/granite-4-h-tiny"):
    """How fast is Granite 4.0-H Tiny, and how often does its host wait for the GPU?"""
