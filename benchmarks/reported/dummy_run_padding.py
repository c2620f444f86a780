"""Scenario ``reported/dummy-run-padding``."""

from hybridwatch.watch.suite import Suite


class DummyRunPadding(Suite, scenario="reported/dummy-run-padding"):
    """Do padded rows of dummy batches keep off cached states?"""
