"""hybridwatch: benchmark-and-regression watch for vLLM engines that serve hybrid models.

The library has a producing side (``engines``, ``measurement``) and a reading side (``analysis``,
``formats``, ``database``, ``history``, ``reports``, ``api``, ``pages``). They meet only in
``records``, and above both in ``orchestration`` and ``cli``; the import contracts in
``pyproject.toml`` hold it so. ``client`` is for programs that ask a server of the API.
"""
