"""Traces of real loads: which request came when, how long it was, and what it shares with others.

Three public forms are read, none of which has texts:

- Mooncake's JSONL (Qin et al., "Mooncake", FAST 2025; ``FAST25-release`` of kvcache-ai/Mooncake):
  ``timestamp`` in ms, ``input_length``, ``output_length``, ``hash_ids``, one for each block of 512
  tokens of the prompt; prompts that begin with the same ids begin with the same text.
- ``mooncake_trace`` of aiperf (``docs/benchmark-modes/trace-replay.md`` of ai-dynamo/aiperf), which
  adds ``session_id`` and ``delay``: a turn comes so many ms after the answer before it, and
  goes on from it where it has no ``hash_ids`` of its own.
- Azure's CSV (Patel et al., "Splitwise", ISCA 2024; ``AzureLLMInferenceDataset2023.md`` of
  Azure/AzurePublicDataset): ``TIMESTAMP``, ``ContextTokens``, ``GeneratedTokens``.
"""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.validation import Count, Part, Tokens, explain

Milliseconds = Annotated[float, Field(ge=0, le=1e15)]
LONGEST_REPLAY_S: Final = 3600.0
_Speed = Annotated[float, Field(ge=0.001, le=1_000_000)]
_Length = Annotated[int, Field(ge=0, le=1_048_576)]


class Trace(Part):
    """The table ``workload.trace``: a file, and how it is replayed.

    Attributes:
        file: Below the folder of scenarios, or a whole path.
        requests: The first so many; all if left out.
        speed: 10 replays ten minutes in one.
        shrink: By what lengths and blocks are divided, rounded up.
        block_tokens: Tokens of the block that an id of ``hash_ids`` stands for, before that.
    """

    file: Annotated[str, Field(pattern=r"\.(jsonl|csv)$", description="a .jsonl or .csv file")]
    requests: Count | None = None
    speed: _Speed = 1.0
    shrink: Tokens = 1
    block_tokens: Tokens = 512


class TracedRequest(Part):
    """One request of a trace, as it is replayed.

    Attributes:
        delay_s: From the start of the wave, or from the answer to the request ``after``.
        after: Number of an earlier request of the wave.
        texts: What the prompt begins with: names of made texts, and how many tokens of each.
            Requests with one name share its text; what is then missing of the length is its own.
    """

    delay_s: Annotated[float, Field(ge=0, le=LONGEST_REPLAY_S)]
    input_tokens: Tokens
    output_tokens: Tokens
    after: Annotated[int, Field(ge=0)] | None = None
    texts: tuple[tuple[str, Tokens], ...] = ()


class _Line(BaseModel):
    """A line of any form; keys of others say nothing that a replay needs."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)

    input_length: _Length
    output_length: _Length
    timestamp: Milliseconds | None = None
    delay: Milliseconds | None = None
    session_id: str | int | None = None
    hash_ids: tuple[int, ...] = Field(default=(), strict=False)


_OTHER_PROMPTS: Final = ("messages", "text_input", "payload", "tools", "extra", "context_mode")
"""Keys of aiperf's that make a request other than its lengths say."""
_AZURE: Final = {"ContextTokens": "input_length", "GeneratedTokens": "output_length"}


def read_trace(trace: Trace, folders: Sequence[Path]) -> tuple[TracedRequest, ...]:
    """Read the file of a trace, looked up in ``folders``, and say what is replayed when.

    Raises:
        ScenarioError: With file, line, key, expected and found.
    """
    places = [folder / trace.file for folder in folders]
    path = next((place for place in places if place.is_file()), places[0])
    rows = _azure_rows if path.suffix == ".csv" else _jsonl_rows
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = [_parse(row, where) for where, row in islice(rows(file, path), trace.requests)]
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: cannot be read: {error}") from None
    if len(lines) < (trace.requests or 1):
        found = f"expected at least {trace.requests or 1} requests, found {len(lines)}"
        raise ScenarioError(f"{path}: {found}")
    if any(line.hash_ids for line in lines) and trace.block_tokens % trace.shrink:
        wanted = f"a divisor of block_tokens ({trace.block_tokens})"
        found = f"found {trace.shrink}"
        raise ScenarioError(f"{path}: workload.trace.shrink: expected {wanted}, {found}")
    return tuple(_replayed(trace, lines, path))


def _jsonl_rows(file: Any, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, text in enumerate(file, start=1):
        where = f"{path}:{number}"
        try:
            row = json.loads(text) if text.strip() else {}
        except ValueError as error:
            raise ScenarioError(f"{where}: expected JSON: {error}") from None
        if not isinstance(row, dict):
            raise ScenarioError(f"{where}: expected an object, found {text.strip()[:60]}")
        for key in _OTHER_PROMPTS:
            if row.get(key) is not None:
                wanted = "expected none, since prompts are made from lengths and ids alone"
                raise ScenarioError(f"{where}: {key}: {wanted}")
        if text.strip():
            yield where, row


def _azure_rows(file: Any, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    begin: datetime | None = None
    for number, row in enumerate(csv.DictReader(file), start=2):
        where = f"{path}:{number}"
        try:
            at = datetime.fromisoformat(row["TIMESTAMP"].strip()[:26])
            found: dict[str, Any] = {name: int(row[key]) for key, name in _AZURE.items()}
        except (KeyError, TypeError, ValueError, AttributeError):
            wanted = f"TIMESTAMP (a date and a time), {', '.join(_AZURE)} (integers)"
            raise ScenarioError(f"{where}: expected {wanted}, found {row}") from None
        begin = begin or at
        yield where, {**found, "timestamp": (at - begin).total_seconds() * 1000}


def _parse(row: Mapping[str, Any], where: str) -> _Line:
    try:
        return _Line.model_validate(row)
    except ValidationError as error:
        raise ScenarioError("\n".join(f"{where}: {one}" for one in explain(_Line, error))) from None


def _replayed(trace: Trace, lines: Sequence[_Line], path: Path) -> Iterator[TracedRequest]:
    """Say what is replayed; a turn's history has made answers, whatever the engine answers."""
    begin = min((line.timestamp for line in lines if line.timestamp is not None), default=0.0)
    last: dict[str | int, int] = {}
    spoken: dict[str | int, int] = {}
    for number, line in enumerate(lines):
        session = line.session_id
        after = None if session is None else last.get(session)
        if line.timestamp is None and (after is None or line.delay is None):
            wanted = "a timestamp, or a delay and an earlier turn of its session_id"
            raise ScenarioError(f"{path}: request {number}: expected {wanted}, found neither")
        after = after if line.timestamp is None else None
        wait = line.delay or 0.0 if line.timestamp is None else line.timestamp - begin
        delay_s = round(wait / 1000 / trace.speed, 6)
        if delay_s > LONGEST_REPLAY_S:
            most = f"at most {LONGEST_REPLAY_S:.0f} s after the first"
            found = f"{delay_s:.0f} s: raise speed, or replay fewer requests"
            raise ScenarioError(f"{path}: request {number}: expected {most}, found {found}")
        # Half a token cannot be sent, nor none.
        whole = line.input_length, line.output_length
        length, answer = (max(1, -(-tokens // trace.shrink)) for tokens in whole)
        texts = _texts_of_blocks(line.hash_ids, length, trace.block_tokens // trace.shrink)
        if session is not None:
            if not line.hash_ids:
                length += spoken.get(session, 0)
                texts = ((f"session/{session}", length),)
                spoken[session] = length + answer
            last[session] = number
        yield TracedRequest(
            delay_s=delay_s, input_tokens=length, output_tokens=answer, after=after, texts=texts
        )


def _texts_of_blocks(ids: Sequence[int], length: int, block: int) -> tuple[tuple[str, int], ...]:
    """Give each block its text; the last may be cut, and what no id covers is left."""
    lengths = [min(block, length - block * at) for at in range(len(ids))]
    return tuple(
        (f"block/{one}", tokens) for one, tokens in zip(ids, lengths, strict=True) if tokens > 0
    )


def fill_in(workload: Mapping[str, Any], folders: Sequence[Path], name: str) -> dict[str, Any]:
    """Give the workload of scenario ``name`` the waves and the timed load that replay its trace.

    A wave with ``arrival = "trace"`` is the trace; without any wave there is one such.
    """
    if "generation" in workload:
        wanted = "expected none with workload.trace, which is the load"
        raise ScenarioError(f"{name}: workload.generation: {wanted}")
    try:
        trace = Trace.model_validate(workload["trace"])
    except ValidationError as error:
        lines = explain(Trace, error)
        raise ScenarioError("\n".join(f"{name}: workload.trace.{one}" for one in lines)) from None
    requests = read_trace(trace, folders)
    wave = {
        "arrival": "trace",
        "requests": len(requests),
        "input_tokens": [one.input_tokens for one in requests],
        "output_tokens": [one.output_tokens for one in requests],
        "trace": requests,
    }
    generation = {
        "prompts": len(requests),
        "input_tokens": max(wave["input_tokens"]),
        "output_tokens": max(wave["output_tokens"]),
        "max_concurrency": len(requests),
        "seed": workload.get("seed"),
        "replay": wave,
    }
    waves = workload.get("waves", [{"arrival": "trace"}])
    if isinstance(waves, list):
        waves = [{**wave, **one} if _is_of_trace(one) else one for one in waves]
    return {**workload, "waves": waves, "generation": generation}


def _is_of_trace(wave: object) -> bool:
    return isinstance(wave, Mapping) and wave.get("arrival") == "trace"
