"""Scenario ``reported/conv-anchor``."""

from hybridwatch.watch.suite import Suite


class ConvAnchor(Suite, scenario="reported/conv-anchor"):
    """Does the convolution's state start where the last step was accepted?"""
