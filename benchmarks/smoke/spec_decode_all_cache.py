"""Scenario ``smoke/spec-decode-all-cache``."""

from hybridwatch.watch.suite import Suite


class SpecDecodeAllCache(Suite, scenario="smoke/spec-decode-all-cache"):
    """Do drafts rejected in the next block leave every block's cached state right?"""
