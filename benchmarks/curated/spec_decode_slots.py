"""Scenario ``curated/spec-decode-slots``."""

from hybridwatch.watch.suite import Suite


class SpecDecodeSlots(Suite, scenario="curated/spec-decode-slots"):
    """Have the slots of a graph room for speculative blocks?"""
