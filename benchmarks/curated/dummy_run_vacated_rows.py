"""Scenario ``curated/dummy-run-vacated-rows``."""

from hybridwatch.watch.suite import Suite


class DummyRunVacatedRows(Suite, scenario="curated/dummy-run-vacated-rows"):
    """Do dummy batches keep off rows that requests moved away from?"""
