"""Scenario ``smoke/single-token-extend``."""

from hybridwatch.watch.suite import Suite


class SingleTokenExtend(Suite, scenario="smoke/single-token-extend"):
    """Is a prompt's last token answered from its own state when a decode graph replays it?"""
