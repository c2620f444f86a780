"""Traces of real loads: which request came when, how long it was, and what it shares with others.

``scenarios/README.md`` says what is read of three public forms, none of which has texts: Mooncake's
(Qin et al., "Mooncake", FAST 2025; ``FAST25-release`` of kvcache-ai/Mooncake), aiperf's
(``docs/benchmark-modes/trace-replay.md`` of ai-dynamo/aiperf) and Azure's (Patel et al.,
"Splitwise", ISCA 2024; ``AzureLLMInferenceDataset2023.md`` of Azure/AzurePublicDataset).
"""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.validation import Count, Part, Tokens, explain

_Model = TypeVar("_Model", bound=BaseModel)
_Milliseconds = Annotated[float, Field(ge=0, le=1e15)]
_Length = Annotated[int, Field(ge=0, le=1_048_576)]


class Trace(Part):
    """The table ``workload.trace``; ``scenarios/README.md`` says what each key means."""

    file: Annotated[str, Field(pattern=r"\.(jsonl|csv)$", description="a .jsonl or .csv file")]
    requests: Count | None = None
    speed: Annotated[float, Field(ge=0.001, le=1_000_000)] = 1.0
    shrink: Tokens = 1
    block_tokens: Tokens = 512


class TracedRequest(Part):
    """One request, as it is replayed: from the begin, or the answer to the earlier one ``after``.

    ``texts`` has names of made texts, and how many tokens of each the prompt begins with; the rest
    of its length is its own.
    """

    delay_s: Annotated[float, Field(ge=0)]
    input_tokens: Tokens
    output_tokens: Tokens
    after: Annotated[int, Field(ge=0)] | None = None
    texts: tuple[tuple[str, Tokens], ...] = ()


class _Line(BaseModel):
    """A line of any form; keys of others say nothing that a replay needs."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)

    input_length: _Length
    output_length: _Length
    timestamp: _Milliseconds | None = None
    delay: _Milliseconds | None = None
    session_id: str | int | None = None
    hash_ids: tuple[int, ...] = Field(default=(), strict=False)


_OTHER_PROMPTS: Final = ("messages", "text_input", "payload", "tools", "extra", "context_mode")
"""Keys of aiperf's that make a request other than its lengths say."""


def read_trace(trace: Trace, folders: Sequence[Path]) -> tuple[TracedRequest, ...]:
    """Read the file of a trace, looked up in ``folders``, and say what is replayed when."""
    places = [folder / trace.file for folder in folders]
    path = next((place for place in places if place.is_file()), places[0])
    rows = _azure_rows if path.suffix == ".csv" else _mooncake_rows
    try:
        with path.open(encoding="utf-8", newline="") as file:
            first = islice(rows(file, path), trace.requests)
            found = [(where, _parse(_Line, row, f"{where}: ")) for where, row in first]
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: cannot be read: {error}") from None
    if len(found) < (least := trace.requests or 1):
        raise ScenarioError(f"{path}: expected at least {least} requests, found {len(found)}")
    if trace.block_tokens % trace.shrink and any(line.hash_ids for _, line in found):
        wanted = f"a divisor of block_tokens ({trace.block_tokens}), found {trace.shrink}"
        raise ScenarioError(f"{path}: workload.trace.shrink: expected {wanted}")
    return tuple(_replayed(trace, found))


def _mooncake_rows(file: Iterable[str], path: Path) -> Iterator[tuple[str, Any]]:
    for number, text in enumerate(file, start=1):
        where = f"{path}:{number}"
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except ValueError as error:
            raise ScenarioError(f"{where}: expected JSON: {error}") from None
        if not isinstance(row, dict):
            raise ScenarioError(f"{where}: expected an object, found {text.strip()[:60]}")
        if own := [key for key in _OTHER_PROMPTS if row.get(key) is not None]:
            wanted = "expected none, since prompts are made from lengths and ids alone"
            raise ScenarioError(f"{where}: {own[0]}: {wanted}")
        yield where, row


def _azure_rows(file: Iterable[str], path: Path) -> Iterator[tuple[str, Any]]:
    begin: datetime | None = None
    for number, row in enumerate(csv.DictReader(file), start=2):
        try:
            at = datetime.fromisoformat(row["TIMESTAMP"].strip()[:26])  # microseconds
            lengths = {"input_length": int(row["ContextTokens"])}
            lengths["output_length"] = int(row["GeneratedTokens"])
        except (KeyError, TypeError, ValueError, AttributeError):
            wanted = "TIMESTAMP (a date and a time), ContextTokens, GeneratedTokens (integers)"
            raise ScenarioError(f"{path}:{number}: expected {wanted}, found {row}") from None
        begin = begin or at
        yield f"{path}:{number}", {**lengths, "timestamp": (at - begin).total_seconds() * 1000}


def _parse(model: type[_Model], row: object, where: str) -> _Model:
    try:
        return model.model_validate(row)
    except ValidationError as error:
        raise ScenarioError("\n".join(f"{where}{one}" for one in explain(model, error))) from None


def _replayed(trace: Trace, lines: Sequence[tuple[str, _Line]]) -> Iterator[TracedRequest]:
    """Say what is replayed; a turn's history has made answers, whatever the engine answers."""
    block = max(1, trace.block_tokens // trace.shrink)
    begin = min((one.timestamp for _, one in lines if one.timestamp is not None), default=0.0)
    last: dict[str | int, int] = {}
    spoken: dict[str | int, int] = {}
    for number, (where, line) in enumerate(lines):
        session, after = line.session_id, None
        wait = (line.timestamp or 0.0) - begin
        if line.timestamp is None:
            after = None if session is None else last.get(session)
            if after is None or line.delay is None:
                wanted = "a timestamp, or a delay and an earlier turn of its session_id"
                raise ScenarioError(f"{where}: expected {wanted}, found neither")
            wait = line.delay
        delay_s = round(wait / 1000 / trace.speed, 6)
        whole = line.input_length, line.output_length
        length, answer = (max(1, -(-tokens // trace.shrink)) for tokens in whole)
        texts = tuple(  # of the last block, so much as the prompt has
            (f"block/{one}", min(block, length - block * at))
            for at, one in enumerate(line.hash_ids[: -(-length // block)])
        )
        if session is not None:
            if not line.hash_ids:
                length += spoken.get(session, 0)
                texts = ((f"session/{session}", length),)
            spoken[session], last[session] = length + answer, number
        yield TracedRequest(
            delay_s=delay_s, input_tokens=length, output_tokens=answer, after=after, texts=texts
        )


def fill_in(workload: Mapping[str, Any], folders: Sequence[Path], name: str) -> dict[str, Any]:
    """Give the workload of scenario ``name`` the waves and the timed load that replay its trace."""
    own = workload.get("generation", {})
    if not isinstance(own, Mapping) or own.keys() - {"slo"}:
        wanted = "expected slo alone with workload.trace, which is the load"
        raise ScenarioError(f"{name}: workload.generation: {wanted}")
    trace = _parse(Trace, workload["trace"], f"{name}: workload.trace.")
    requests = read_trace(trace, folders)
    wave: dict[str, Any] = {
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
        **own,
    }
    waves = workload.get("waves", [wave])
    own_waves = [one for one in waves if isinstance(one, Mapping)]
    filled = [{**wave, **one} if one.get("arrival") == "trace" else one for one in own_waves]
    return {**workload, "waves": filled, "generation": generation}
