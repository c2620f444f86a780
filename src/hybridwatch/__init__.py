"""hybridwatch: benchmark-and-regression watch for vLLM engines that serve hybrid models.

The library has a producing side (``engine``, ``quality``, ``measure``) and a reading side
(``store``, ``analysis``, ``views``). They meet only in ``record`` and in ``cli``; the import
contracts in ``pyproject.toml`` hold it so.
"""
