"""Scoring requests: one token each, gone as soon as they came, their batch rows left behind."""

import random
from typing import Final

import httpx

from hybridwatch.errors import MeasurementError
from hybridwatch.measure.bench import LiveEngine
from hybridwatch.scenario.scenario import Scoring

_TIMEOUT_S: Final = 60.0
_ATTEMPTS: Final = 10
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz "


def leave_stale_rows(engine: LiveEngine, scoring: Scoring, rows: range, seed: int) -> None:
    """Let scoring requests come and go until they have left the wanted rows behind.

    All are sent as one request with many prompts, so that they arrive together; how many share an
    engine step is still the scheduler's business, so the rows are looked at and not assumed.

    Args:
        engine: The engine.
        scoring: How many, how long; nothing happens for none.
        rows: Rows that later batches will pad with; nothing is checked when empty.
        seed: Of the prompts' text; a letter is a token for the byte-level models.

    Raises:
        EngineError: A request was not answered.
        MeasurementError: The rows were never left behind, so the workload would show nothing.
    """
    if not scoring.requests:
        return
    letters = random.Random(seed)  # noqa: S311 - repeatable text, no secret
    for _ in range(_ATTEMPTS):
        _score(engine, scoring, letters)
        if engine.control.stale_rows().issuperset(rows):
            return
    raise MeasurementError(
        f"{_ATTEMPTS} times {scoring.requests} scoring requests did not leave rows {list(rows)} "
        "behind; raise workload.scoring.requests"
    )


def _score(engine: LiveEngine, scoring: Scoring, letters: random.Random) -> None:
    prompts = [
        "".join(letters.choices(_LETTERS, k=scoring.prompt_tokens)) for _ in range(scoring.requests)
    ]
    server = engine.server
    body = {"model": server.launch.served_name, "prompt": prompts, "max_tokens": 1}
    try:
        httpx.post(
            f"{server.url}/v1/completions", json=body, timeout=_TIMEOUT_S, trust_env=False
        ).raise_for_status()
    except httpx.HTTPError as error:
        raise server.error(f"the scoring requests were not answered: {error}") from error
