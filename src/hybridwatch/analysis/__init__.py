"""Judging: from runs to comparisons and verdicts. Pure functions, no disk, no engine.

``report`` is the way in, ``gate`` the policy, ``verdict`` the types that are shown. The rules are
in ``rank`` and ``signed_rank`` (times, rates, counts), ``paired_proportion`` (accuracy) and
``compare`` (exact counters); ``judge`` turns their numbers into a verdict under the report's one
control. ``docs/judging.md`` says the same in prose, with sources.

This file imports nothing, so that types can be had without SciPy.
"""
