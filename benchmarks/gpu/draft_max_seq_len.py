"""Scenario ``gpu/draft-max-seq-len``."""

from hybridwatch.watch.suite import Suite


class DraftMaxSeqLen(Suite, scenario="gpu/draft-max-seq-len"):
    """Does the metadata of target and draft speak of the batch, on a GPU?"""
