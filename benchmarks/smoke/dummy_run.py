"""Scenario ``smoke/dummy-run``."""

from hybridwatch.watch.suite import Suite


class DummyRun(Suite, scenario="smoke/dummy-run"):
    """Do an idle rank's dummy batches leave cached states alone?"""
