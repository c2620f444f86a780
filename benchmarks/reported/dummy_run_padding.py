"""Scenario ``reported/dummy-run-padding``."""

from hybridwatch.cli.suite import Suite


class DummyRunPadding(Suite, scenario="reported/dummy-run-padding"):
    """Do padded rows of dummy batches keep off cached states?"""
