"""Functions that wrap functions of vLLM, by mechanism, for the mutants of ``*.toml`` here.

An engine's settings name this folder (``mutants``), and it loads each module from its file, so
none imports its neighbours.
"""
