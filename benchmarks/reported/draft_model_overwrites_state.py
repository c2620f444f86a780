"""Scenario ``reported/draft-model-overwrites-state``."""

from hybridwatch.watch.suite import Suite


class DraftModelOverwritesState(Suite, scenario="reported/draft-model-overwrites-state"):
    """Does a draft model keep off the target's Mamba states?"""
