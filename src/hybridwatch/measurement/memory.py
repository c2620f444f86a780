"""What an engine takes: memory around a timed load, its cache at rest, seconds for its start.

A healthy process still allocates now and then for many requests at once. So growth is what both the
load and a few more requests show; at least ``LEAST_GROWTH``.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import httpx

from hybridwatch.engines.control import LiveEngine
from hybridwatch.engines.server import open_http
from hybridwatch.errors import MeasurementError
from hybridwatch.measurement.completions import build_body
from hybridwatch.measurement.load import TrialContext
from hybridwatch.measurement.waves import (
    ARRIVAL_TIMEOUT_S,
    COMPLETIONS,
    REQUEST_TIMEOUT_S,
    drive,
)
from hybridwatch.metrics import CAPACITY_METRICS, FIRST_REQUEST_TIME, REQUEST_BLOCKS
from hybridwatch.records.readings import CLOCK_DIGITS
from hybridwatch.records.run import Sample
from hybridwatch.scenarios.expansion import PlannedRequest, PlannedWave, expand
from hybridwatch.system.guarded import ProcessMemory, forget_peak, read_memory

LEAST_GROWTH: Final = 2**12
"""Bytes a request: growth of healthy engines stays below it."""

MORE_REQUESTS: Final = 16
"""Sent after the load, of two tokens each."""

_POLL_S: Final = 0.002


def begin_memory(trial: TrialContext) -> ProcessMemory | None:
    """Read what an engine at rest holds, and forget peaks; not of a sweep, with unlike loads."""
    if trial.scenario.sweep is not None:
        return None
    found = _read(trial.engine)
    for one in trial.engine.server.servers:
        forget_peak(one.pid)
    return found


def samples_of_memory(before: ProcessMemory | None, trial: TrialContext) -> tuple[Sample, ...]:
    """What an engine holds after a trial's load, and by how much a request made it grow."""
    trial.engine.control.drain()
    after = _read(trial.engine)
    if before is None or after is None:
        return ()
    workload = trial.scenario.workload
    waves = expand(workload.prelude, workload.seed + trial.number, "prelude")
    requests = workload.generation.prompts + sum(len(wave.requests) for wave in waves)
    grown = [(after.resident - before.resident) / requests]
    more = [build_request(trial, number) for number in range(MORE_REQUESTS)]
    if further := tuple(one for one in more if one is not None):
        at_once = workload.generation.max_concurrency
        drive(trial.engine, [PlannedWave(further, "queue", max_concurrency=at_once)])
        if (again := _read(trial.engine)) is not None:
            grown.append((again.resident - after.resident) / len(further))
    return (
        Sample("memory_growth", (round(max(float(LEAST_GROWTH), min(grown)), 1),)),
        Sample("resident_memory", (float(after.resident),)),
        Sample("peak_memory", (float(after.peak),)),
    )


def _read(engine: LiveEngine) -> ProcessMemory | None:
    """Read what is in use, without what was freed and is kept for later."""
    engine.control.trim()
    parts = [read_memory(one.pid) for one in engine.server.servers]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return ProcessMemory(sum(one.resident for one in known), sum(one.peak for one in known))


def read_capacity(trial: TrialContext) -> tuple[tuple[Sample, ...], dict[str, str]]:
    """Read what fits into the cache of an engine at rest, and how much of that one request takes.

    The second of the pair has the metrics that the engine does not support, with the reason.
    Several engines have no one cache.
    """
    engine = trial.engine
    args = engine.server.launch.engine
    if args.disaggregated or args.data_parallel_size > 1:
        return (), {}
    engine.control.drain()
    try:
        found = engine.control.read_capacity()
        values = {name: found[key] for name, key in CAPACITY_METRICS.items()}
        if (request := build_request(trial, MORE_REQUESTS)) is not None:
            values[REQUEST_BLOCKS] = count_blocks(engine, request) - found["held"]
    except MeasurementError as error:
        return (), dict.fromkeys(CAPACITY_METRICS, str(error))
    return tuple(Sample(name, (float(value),)) for name, value in values.items()), {}


def build_request(trial: TrialContext, number: int = 0) -> PlannedRequest | None:
    """A request of two tokens, as long as the load's, of what the waves know, by ``number``."""
    workload = trial.scenario.workload
    waves = expand(workload.waves, workload.seed)
    known = next((request.prompt for wave in waves for request in wave.requests), ())
    length = workload.generation.input_tokens
    prompt = (known * (length + number))[number : number + length]
    return PlannedRequest(prompt, max_tokens=2) if prompt else None


def count_blocks(engine: LiveEngine, request: PlannedRequest) -> int:
    """Count the blocks that are held, at most, while one request is served alone, step by step."""
    control, server = engine.control, engine.server
    body, most = build_body(request, server.launch.served_name, {}), 0
    with (
        open_http(server.url, REQUEST_TIMEOUT_S) as http,
        ThreadPoolExecutor(1) as sender,
    ):
        control.hold()
        try:
            answer = sender.submit(http.post, COMPLETIONS, json=body)
            deadline = time.monotonic() + ARRIVAL_TIMEOUT_S
            while not control.requests():
                if answer.done() or time.monotonic() > deadline:
                    raise MeasurementError("a request did not reach the engine that was held")
                time.sleep(_POLL_S)
            while control.run_steps(1):
                most = max(most, control.read_capacity()["held"])
        finally:
            control.release()
        answer.result()
    control.drain()
    return most


def time_first_request(trial: TrialContext) -> None:
    """Time one request to an engine whose start is known, before it has served anything.

    Nothing is known of a request that fails: the load after it says why.
    """
    engine = trial.engine
    request = build_request(trial) if engine.start and engine.is_fresh else None
    if request is None:
        return
    server = engine.server
    body = build_body(request, server.launch.served_name, {})
    with open_http(server.url, REQUEST_TIMEOUT_S) as http:
        begin = time.monotonic()
        try:
            http.post(COMPLETIONS, json=body).raise_for_status()
        except httpx.HTTPError:
            return
        engine.start[FIRST_REQUEST_TIME] = round(time.monotonic() - begin, CLOCK_DIGITS)
    engine.settle(engine.setting)  # as if nothing had been served


def samples_of_start(trial: TrialContext) -> tuple[Sample, ...]:
    """Hand out what is known of the start of a trial's engine to the first trial that counts."""
    if trial.is_warmup:
        return ()
    known, trial.engine.start = trial.engine.start, {}
    return tuple(Sample(name, (seconds,)) for name, seconds in known.items())
