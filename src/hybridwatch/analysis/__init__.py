"""Judging: from runs to comparisons and verdicts. Pure functions, no disk, no engine.

``report`` is the way in, ``docs/judging.md`` says the rules in prose, with sources. This file
imports nothing, so that types can be had without SciPy.
"""
