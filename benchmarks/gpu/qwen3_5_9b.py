"""Scenario ``gpu/qwen3-5-9b``."""

from hybridwatch.watch.suite import Suite


class Qwen359b(Suite, scenario="gpu/qwen3-5-9b"):
    """How fast is Qwen3.5 9B, and how often does its host wait for the GPU?"""
