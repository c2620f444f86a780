"""Scenario ``reported/cpu-speculative-states``."""

from hybridwatch.watch.suite import Suite


class CpuSpeculativeStates(Suite, scenario="reported/cpu-speculative-states"):
    """Are the CPU's states of speculative tokens those of the tokens accepted?"""
