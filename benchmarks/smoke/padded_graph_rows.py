"""Scenario ``smoke/padded-graph-rows``."""

from hybridwatch.watch.suite import Suite


class PaddedGraphRows(Suite, scenario="smoke/padded-graph-rows"):
    """Is the engine right, fast and free of host reads while FULL graphs pad the decode batch?"""
