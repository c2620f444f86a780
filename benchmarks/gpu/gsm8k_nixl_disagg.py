"""Scenario ``gpu/gsm8k-nixl-disagg``."""

from hybridwatch.watch.suite import Suite


class Gsm8kNixlDisagg(Suite, scenario="gpu/gsm8k-nixl-disagg"):
    """Does a released model answer GSM8K as a disaggregated pair?"""
