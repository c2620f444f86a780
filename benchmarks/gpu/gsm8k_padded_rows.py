"""Scenario ``gpu/gsm8k-padded-rows``."""

from hybridwatch.watch.suite import Suite


class Gsm8kPaddedRows(Suite, scenario="gpu/gsm8k-padded-rows"):
    """Does a released model answer GSM8K while FULL graphs pad its batches?"""
