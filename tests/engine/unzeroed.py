"""The planted fault of new requests that begin with another one's state, on a live engine."""

from dataclasses import replace
from pathlib import Path

from hybridwatch.measure.bench import Bench
from hybridwatch.measure.phase import Station, measure
from hybridwatch.metric.catalogue import WRONG_TOKENS
from hybridwatch.record.run import Phase


def wrong_tokens_with_unzeroed_state(bench: Bench, side: int, work: Path) -> float:
    """Requests of a contract trial with wrong tokens while the fault is in; it is out again after.

    What is right the trial asks of the same engine without the fault.
    """
    engine = bench.make_ready(side)
    engine.settle(replace(engine.setting, planted=("unzeroed-state",)))
    samples = measure(Phase.CONTRACT, Station(bench, side, work)).samples
    bench.make_ready(side)
    return next(sample.values[0] for sample in samples if sample.metric == WRONG_TOKENS)
