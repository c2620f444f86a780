"""The highest request rate that keeps an objective, searched for in a performance trial.

Nine in ten requests must keep every bound, as in Zhong et al., "DistServe: Disaggregating Prefill
and Decoding for Goodput-optimized Large Language Model Serving" (OSDI 2024). A single search can be
misled near the border, so each trial has one of its own, and trials are compared as of any metric.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from hybridwatch.measurement.load import TrialContext, run_load
from hybridwatch.metrics import SLO_REQUEST_RATE
from hybridwatch.records.readings import latencies
from hybridwatch.records.run import Sample

_SHARE: Final = 0.9
_LOWEST, _HIGHEST = 1 / 8, 2.0
"""Where a search begins and ends, in requests that the engine finishes if all come at once. With
few requests the highest rate can be above 1: the queue is over before it is long."""
TRIED: Final = "slo_search"
"""Key of the client's JSON: each rate and its strain, in the order in which they were tried."""


def search_rate(strain: Callable[[float], float], full: float, loads: int) -> float:
    """Search for the rate at which the strain is 1, by ``loads`` halvings of a range of logarithms.

    Between the last two rates the logarithm of the strain is taken for a line. Gives 0 if no rate
    keeps the objective, and the highest one tried if all do. ``full`` is the rate in between.
    """
    low, high = full * _LOWEST, full * _HIGHEST
    kept = missed = 0.0
    for _ in range(loads):
        rate = math.sqrt(low * high)
        found = strain(rate)
        if found <= 1:
            low, kept = rate, found
        else:
            high, missed = rate, found
    if not (kept and missed):
        return low if kept else 0.0
    part = math.log(1 / kept) / math.log(missed / kept)
    return float(low * (high / low) ** part)


def compute_strain(result: Mapping[str, Any], bounds: Mapping[str, float]) -> float:
    """Say which share of its tightest bound nine in ten requests stay within; 1 just keeps it."""
    every = latencies(result["ttfts"], result["itls"], result["output_lens"])
    times = {sample.metric: sample.values for sample in every}
    shares = ([time / bound for time in times[metric]] for metric, bound in bounds.items())
    worst: list[float] = sorted(map(max, zip(*shares, strict=True)))
    return worst[math.ceil(_SHARE * len(worst)) - 1]


def search_objective(
    trial: TrialContext, full: Mapping[str, Any]
) -> tuple[tuple[Sample, ...], dict[str, Any]]:
    """Search where a load says so, after its full load; gives what the client's JSON gets, too.

    Before each load the engine is put back, so that no prompt is found in a cache.
    """
    load = trial.scenario.workload.generation
    if load.search is None or load.slo is None or trial.is_warmup:
        return (), {}
    bounds, tried = load.slo.bounds, list[tuple[float, float]]()

    def strain(rate: float) -> float:
        trial.engine.settle(trial.engine.setting)
        # Requests wait in the engine, where that counts, and never in the client.
        update = {"request_rate": rate, "max_concurrency": load.prompts}
        found = compute_strain(run_load(trial, load.model_copy(update=update)), bounds)
        tried.append((rate, found))
        return found

    value = search_rate(strain, full["request_throughput"], load.search)
    return (Sample(SLO_REQUEST_RATE, (value,)),), {TRIED: tried}
