"""Scenario ``gpu/spec-decode-all-cache``."""

from hybridwatch.watch.suite import Suite


class SpecDecodeAllCache(Suite, scenario="gpu/spec-decode-all-cache"):
    """Do drafts rejected in the next block leave cached states right on a GPU?"""
