"""Scenario ``gpu/dummy-run``."""

from hybridwatch.watch.suite import Suite


class DummyRun(Suite, scenario="gpu/dummy-run"):
    """Do an idle rank's dummy batches leave cached states alone on a GPU?"""
