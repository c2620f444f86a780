"""Scenario ``gpu/single-token-extend``."""

from hybridwatch.watch.suite import Suite


class SingleTokenExtend(Suite, scenario="gpu/single-token-extend"):
    """Is a prompt's last token answered from its own state in a CUDA graph?"""
