"""Planted faults on a live engine: one that graphs show, and some that they do not."""

from dataclasses import replace
from pathlib import Path

import pytest

from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.load import TrialContext
from hybridwatch.measurement.phase import TrialResult, measure
from hybridwatch.metrics import WRONG_TOKENS
from hybridwatch.records.run import Phase


def wrong_tokens_with_unzeroed_state(pool: EnginePool, side: int, work: Path) -> float:
    """Requests of a contract trial with wrong tokens while the fault is in; it is out again after.

    What is right the trial asks of the same engine without the fault.
    """
    engine = pool.make_ready(side)
    engine.settle(replace(engine.setting, planted=("unzeroed-state",)))
    samples = measure(Phase.CONTRACT, TrialContext(pool, side, work)).samples
    pool.make_ready(side)
    return next(sample.values[0] for sample in samples if sample.metric == WRONG_TOKENS)


def trial_with_fault_in_both_passes(
    pool: EnginePool, side: int, work: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> TrialResult:
    """A contract trial of an engine that is wrong with graphs and without; healthy again after.

    What planting by a label is not: there the pass without graphs is without the fault.
    """
    engine = pool.make_ready(side)
    right = pool.reference(side)
    engine.settle(replace(engine.setting, planted=(fault,)))
    with monkeypatch.context() as patched:
        patched.setattr(EnginePool, "reference", lambda *_: replace(right, planted=(fault,)))
        measured = measure(Phase.CONTRACT, TrialContext(pool, side, work))
    pool.make_ready(side)
    return measured
