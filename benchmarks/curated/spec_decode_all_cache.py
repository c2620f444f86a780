"""Scenario ``curated/spec-decode-all-cache``."""

from hybridwatch.watch.suite import Suite


class SpecDecodeAllCache(Suite, scenario="curated/spec-decode-all-cache"):
    """Does speculation on cached blocks hold in all of its parts together?"""
