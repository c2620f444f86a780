"""Scenario ``curated/spec-decode-memory``."""

from hybridwatch.watch.suite import Suite


class SpecDecodeMemory(Suite, scenario="curated/spec-decode-memory"):
    """Is the memory of speculative blocks counted?"""
