"""Scenario ``curated/nixl-disagg``."""

from hybridwatch.watch.suite import Suite


class NixlDisagg(Suite, scenario="curated/nixl-disagg"):
    """Are answers right when the state moves from a prefill to a decode server?"""
