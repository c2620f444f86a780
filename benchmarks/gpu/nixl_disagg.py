"""Scenario ``gpu/nixl-disagg``."""

from hybridwatch.watch.suite import Suite


class NixlDisagg(Suite, scenario="gpu/nixl-disagg"):
    """Does a decode engine on a GPU go on from the state that it got over NIXL?"""
