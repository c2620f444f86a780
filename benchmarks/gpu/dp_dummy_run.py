"""Scenario ``gpu/dp-dummy-run``."""

from hybridwatch.watch.suite import Suite


class DpDummyRun(Suite, scenario="gpu/dp-dummy-run"):
    """Do two ranks on GPUs leave each other's cached states alone?"""
