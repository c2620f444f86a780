"""Scenario ``reported/i57720-one-token-prompt``."""

from hybridwatch.watch.suite import Suite


class I57720OneTokenPrompt(Suite, scenario="reported/i57720-one-token-prompt"):
    """Are prompts of one token answered from their own state?"""
