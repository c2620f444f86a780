"""Mutants: faults that are switched on in a live engine, to see which of them the suite kills.

``engine/mutants/*.toml`` describes each; the modules here wrap functions of vLLM, by mechanism.
"""
