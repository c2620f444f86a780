"""hybridwatch: benchmark-and-regression watch for vLLM engines that serve hybrid models.

The library has a producing side (``engine``, ``quality``, ``measure``) and a reading side
(``store``, ``analysis``, ``history``, ``report``, ``figures``, ``pages``). They meet only in
``record``, and above both in ``watch`` and ``cli``; the import contracts in ``pyproject.toml`` hold
it so.
"""
