"""Scenario ``gpu/padded-graph-rows``."""

from hybridwatch.watch.suite import Suite


class PaddedGraphRows(Suite, scenario="gpu/padded-graph-rows"):
    """Is the engine right, fast and free of waits while CUDA's FULL graphs pad the decode batch?"""
