"""Scenario ``reported/i39273-draftless-step``."""

from hybridwatch.watch.suite import Suite


class I39273DraftlessStep(Suite, scenario="reported/i39273-draftless-step"):
    """Are accepted drafts remembered over a step without drafts?"""
