"""Planted faults on a live engine: one that graphs show, and some that they do not."""

from dataclasses import replace
from pathlib import Path

import pytest

from hybridwatch.measurement.bench import Bench
from hybridwatch.measurement.phase import Measured, measure
from hybridwatch.measurement.station import Station
from hybridwatch.metrics.catalogue import WRONG_TOKENS
from hybridwatch.records.run import Phase


def wrong_tokens_with_unzeroed_state(bench: Bench, side: int, work: Path) -> float:
    """Requests of a contract trial with wrong tokens while the fault is in; it is out again after.

    What is right the trial asks of the same engine without the fault.
    """
    engine = bench.make_ready(side)
    engine.settle(replace(engine.setting, planted=("unzeroed-state",)))
    samples = measure(Phase.CONTRACT, Station(bench, side, work)).samples
    bench.make_ready(side)
    return next(sample.values[0] for sample in samples if sample.metric == WRONG_TOKENS)


def trial_with_fault_in_both_passes(
    bench: Bench, side: int, work: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> Measured:
    """A contract trial of an engine that is wrong with graphs and without; healthy again after.

    What planting by a label is not: there the pass without graphs is without the fault.
    """
    engine = bench.make_ready(side)
    right = bench.reference(side)
    engine.settle(replace(engine.setting, planted=(fault,)))
    with monkeypatch.context() as patched:
        patched.setattr(Bench, "reference", lambda *_: replace(right, planted=(fault,)))
        measured = measure(Phase.CONTRACT, Station(bench, side, work))
    bench.make_ready(side)
    return measured
