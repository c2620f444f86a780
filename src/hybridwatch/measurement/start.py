"""How long an engine takes to come up, and to serve its first request: once for each start."""

import time

import httpx

from hybridwatch.engines.server import NO_CERTIFICATES
from hybridwatch.measurement.completions import build_body
from hybridwatch.measurement.load import TrialContext
from hybridwatch.measurement.memory import build_request
from hybridwatch.measurement.waves import COMPLETIONS, REQUEST_TIMEOUT_S
from hybridwatch.metrics import FIRST_REQUEST_TIME
from hybridwatch.records.readings import CLOCK_DIGITS
from hybridwatch.records.run import Sample


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
    with httpx.Client(
        base_url=server.url, timeout=REQUEST_TIMEOUT_S, trust_env=False, verify=NO_CERTIFICATES
    ) as http:
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
