"""Scenario ``curated/dp-dummy-run``."""

from hybridwatch.watch.suite import Suite


class DpDummyRun(Suite, scenario="curated/dp-dummy-run"):
    """Do two data-parallel ranks keep their states while one of them idles?"""
