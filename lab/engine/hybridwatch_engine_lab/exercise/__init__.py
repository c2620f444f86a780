"""Every switchable fix, seen at work on the engine's own functions.

Probes read code; here it runs. Each exercise drives real functions of the vLLM at hand on small
CPU tensors, without an engine or a model, and observes the same thing with the fix in and with it
out. ``python -m hybridwatch_engine_lab.exercise`` runs them. The fixes say what is
expected, ``runner``, ``builder`` and ``steps`` hold the stand-ins, ``trial`` switches and judges.
"""
