"""Scenario ``smoke/draft-max-seq-len``."""

from hybridwatch.watch.suite import Suite


class DraftMaxSeqLen(Suite, scenario="smoke/draft-max-seq-len"):
    """Does the metadata of target and draft speak of the batch, on model runner V2?"""
