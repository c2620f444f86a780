"""Scenario ``curated/spec-decode-graph-rows``."""

from hybridwatch.watch.suite import Suite


class SpecDecodeGraphRows(Suite, scenario="curated/spec-decode-graph-rows"):
    """Do graphs keep block indices of requests and not of tokens?"""
