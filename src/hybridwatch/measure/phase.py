"""One trial of each phase: from an engine made ready to raw samples."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hybridwatch.engine.load_client import LoadClient
from hybridwatch.errors import MeasurementError
from hybridwatch.measure.bench import LiveEngine
from hybridwatch.measure.scoring import leave_stale_rows
from hybridwatch.quality.harness import TaskRequest, run_tasks
from hybridwatch.record.run import Answer, Phase, Sample
from hybridwatch.scenario.scenario import Scenario

LOAD_TIMEOUT_S: Final = 120.0
TASKS_TIMEOUT_S: Final = 300.0
_CLOCK_DIGITS: Final = 9
"""The client's clock counts nanoseconds; digits beyond are the noise of its subtraction."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one trial gave."""

    samples: tuple[Sample, ...]
    answers: tuple[Answer, ...] = ()
    client_result: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Station:
    """Everything one trial needs.

    Attributes:
        scenario: What is run.
        engine: Made ready for the side.
        client: Loads the engine.
        work: Folder for the client's and lm-eval's files.
    """

    scenario: Scenario
    engine: LiveEngine
    client: LoadClient
    work: Path


def measure(phase: Phase, station: Station) -> Measured:
    """Make one trial.

    Raises:
        MeasurementError: It gave no measurement, and why.
    """
    match phase:
        case Phase.CONTRACT:
            return _contract(station)
        case Phase.ACCURACY:
            return _accuracy(station)
        case Phase.PERFORMANCE:
            return _performance(station)
        case Phase.HOST_SYNC:
            return _host_sync(station)


def _score(station: Station, concurrency: int) -> None:
    """Leave rows behind where batches of this many requests will be padded."""
    scenario = station.scenario
    rows, seed = scenario.padded_rows(concurrency), scenario.workload.generation.seed
    leave_stale_rows(station.engine, scenario.workload.scoring, rows, seed)


def _load(station: Station) -> dict[str, Any]:
    load = station.scenario.workload.generation
    result = station.work / "client.json"
    return station.client.run(station.engine.server, load, result, LOAD_TIMEOUT_S)


def _probed(station: Station, probe: str) -> dict[str, Any]:
    """Run the whole workload under one probe."""
    control = station.engine.control
    _score(station, station.scenario.workload.generation.max_concurrency)
    control.start_probe(probe)
    try:
        _load(station)
    finally:
        seen = control.stop_probe(probe)
    return seen


def _contract(station: Station) -> Measured:
    counts = Counter(_probed(station, "contract"))
    if not counts["padded_replays"] or not counts["slots"]:
        raise MeasurementError(
            f"of {counts['replays']} graph replays {counts['padded_replays']} had a padded row and "
            f"{counts['slots']} state slots were looked at, so the contract was not put to the "
            "test; look at max_concurrency and cudagraph_capture_sizes"
        )
    names = ("padded_rows_prefilling", "slots_off_block_table")
    return Measured(tuple(Sample(f"contract.{name}", (float(counts[name]),)) for name in names))


def _accuracy(station: Station) -> Measured:
    accuracy, server = station.scenario.accuracy, station.engine.server
    _score(station, accuracy.max_concurrency)
    answers = run_tasks(
        TaskRequest(
            base_url=f"{server.url}/v1/completions",
            model=server.launch.served_name,
            tasks=accuracy.tasks,
            documents=accuracy.documents,
            max_concurrency=accuracy.max_concurrency,
            timeout_s=TASKS_TIMEOUT_S,
            work_dir=station.work,
        )
    )
    samples = tuple(
        Sample(
            f"accuracy.{task}",
            tuple(float(answer.correct) for answer in answers if answer.task == task),
        )
        for task in accuracy.tasks
    )
    return Measured(samples, answers=answers)


def _performance(station: Station) -> Measured:
    _score(station, station.scenario.workload.generation.max_concurrency)
    result = _load(station)
    return Measured(samples_of_client(result), client_result=result)


def samples_of_client(result: Mapping[str, Any]) -> tuple[Sample, ...]:
    """Raw values of one trial from the JSON of vLLM's benchmark client.

    End-to-end latency and time per output token are put together from the time to first token and
    the gaps between tokens as the client does it (``vllm/benchmarks/serve.py``); the JSON holds
    only their statistics.
    """
    ttfts, gaps, lengths = result["ttfts"], result["itls"], result["output_lens"]
    requests = list(zip(ttfts, gaps, lengths, strict=True))
    series = {
        "ttft": ttfts,
        "tpot": [sum(waits) / (length - 1) for _, waits, length in requests if length > 1],
        "itl": [wait for waits in gaps for wait in waits],
        "e2el": [first + sum(waits) for first, waits, _ in requests],
    }
    return (
        Sample("output_throughput", (result["output_throughput"],)),
        Sample("request_throughput", (result["request_throughput"],)),
        *(
            Sample(name, tuple(round(value, _CLOCK_DIGITS) for value in values))
            for name, values in series.items()
        ),
    )


def _host_sync(station: Station) -> Measured:
    """Two passes, since counting the reads slows the very code that the other pass times."""
    reads = _probed(station, "host-sync")["reads_per_step"]
    station.engine.control.reset()
    seconds = _probed(station, "metadata-time")["seconds"]
    if not reads or not seconds:
        raise MeasurementError("the probes saw no engine step")
    return Measured(
        (
            Sample("host_syncs_per_step", tuple(float(count) for count in reads)),
            Sample("metadata_build_time", tuple(round(value, _CLOCK_DIGITS) for value in seconds)),
        )
    )
