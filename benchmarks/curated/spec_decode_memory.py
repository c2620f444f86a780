"""Scenario ``curated/spec-decode-memory``."""

from hybridwatch.cli.suite import Suite


class SpecDecodeMemory(Suite, scenario="curated/spec-decode-memory"):
    """Is the memory of speculative blocks counted?"""
