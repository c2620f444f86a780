"""Functions that wrap functions of vLLM, by mechanism, for the mutants of ``*.toml`` beside them.

An engine is told this folder (``mutants`` in its settings) and loads each module from its file, so
none imports what lies beside it.
"""
