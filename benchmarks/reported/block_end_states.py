"""Scenario ``reported/block-end-states``."""

from hybridwatch.watch.suite import Suite


class BlockEndStates(Suite, scenario="reported/block-end-states"):
    """Are states at the ends of blocks those of the accepted tokens?"""
