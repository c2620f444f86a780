"""Arguments of ``vllm serve`` as the table of a scenario that starts an engine."""

import json
from collections.abc import Iterator
from typing import Any, Final

from pydantic import ValidationError

from hybridwatch.scenarios.engine import EngineArgs
from hybridwatch.scenarios.validation_text import explain

_SAME: Final = (
    "dtype", "max_model_len", "max_num_seqs", "max_num_batched_tokens", "scheduling_policy",
    "mamba_cache_mode", "mamba_ssm_cache_dtype", "block_size", "data_parallel_size",
    "num_gpu_blocks_override",
)  # fmt: skip
"""Arguments that a scenario calls the same."""
_SHORT: Final = {
    "dp": "data_parallel_size", "tp": "tensor_parallel_size", "pp": "pipeline_parallel_size",
}  # fmt: skip
_SWITCHES: Final = ("enable_prefix_caching", "async_scheduling")
_SPECULATION: Final = "speculative_config"
_DRAFTS: Final = {"method": "method", "num_speculative_tokens": "drafts", "model": "model"}
_AUTO: Final = "auto"
_NO_KEY: Final = "a scenario has no such key"


def parse_engine(text: str, at_once: int, tokens: int) -> tuple[dict[str, Any], list[str]]:
    """Give the table for a load, and what was not carried over or set otherwise, one line each.

    ``text`` has the arguments, parted by blanks as by a shell that knows no quotes. ``at_once`` is
    the requests in flight, ``tokens`` those of a prompt and its answer.
    """
    asked: dict[str, Any] = {}
    notes: list[str] = []
    for name, value in _arguments(text):
        key = f"vllm.serve_args --{name}" + ("" if value is None else f" {value}")
        field, found = _field(name, value)
        if field is None:
            notes.append(f"{key}: not carried over: {_NO_KEY}")
        elif field == _SPECULATION:
            asked[field] = {**asked.get(field, {}), **found}
        elif found != _AUTO and (wrong := _wrong(field, found)):
            notes.append(f"{key}: not carried over: {wrong}")
        elif found != _AUTO:
            asked[field] = found
    notes += _speculate(asked)
    return _completed(asked, notes, at_once, tokens), notes


def _arguments(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield names without dashes, and values; ``None`` of a switch."""
    words = text.split()
    at = 0
    while at < len(words):
        name, equals, value = words[at].lstrip("-").partition("=")
        at += 1
        if not equals and at < len(words) and not words[at].startswith("-"):
            value, equals = words[at], "="
            at += 1
        yield name, value if equals else None


def _field(name: str, value: str | None) -> tuple[str | None, Any]:
    """Give the field of an argument and its value; no field where a scenario has none."""
    table, dot, inner = name.replace("-", "_").partition(".")
    word = _SHORT.get(table, table)
    if word == _SPECULATION:
        return word, {inner: _number(value)} if dot else _table(value)
    if word in _SAME and value is not None:
        return word, _number(value)
    if value is None and word.removeprefix("no_") in _SWITCHES:
        return word.removeprefix("no_"), not word.startswith("no_")
    return None, value


def _number(value: str | None) -> Any:
    return int(value) if value is not None and value.isdecimal() else value


def _table(value: str | None) -> dict[str, Any]:
    try:
        found = json.loads((value or "").strip("'\""))
    except ValueError:
        return {"": value}
    return found if isinstance(found, dict) else {"": value}


def _wrong(field: str, value: object) -> str:
    """Say why a scenario does not take a value; empty if it does."""
    least = {"dtype": "bfloat16", "max_model_len": 1, "max_num_seqs": 1}
    least |= {"cudagraph_mode": "NONE", "cudagraph_capture_sizes": ()}
    try:
        EngineArgs.model_validate({**least, field: value})
    except ValidationError as failure:
        return "; ".join(explain(EngineArgs, failure))
    return ""


def _speculate(asked: dict[str, Any]) -> Iterator[str]:
    """Put a scenario's table of speculation in the place of vLLM's."""
    given = asked.pop(_SPECULATION, None)
    if given is None:
        return
    key = f"vllm.serve_args --{_SPECULATION}"
    for name in given.keys() - _DRAFTS.keys():
        yield f"{key}.{name}: not carried over: {_NO_KEY}"
    table = {_DRAFTS[name]: value for name, value in given.items() if name in _DRAFTS}
    wrong = _wrong("speculation", table)
    if wrong:
        yield f"{key}: not carried over: {wrong}"
    else:
        asked["speculation"] = table


def _completed(
    asked: dict[str, Any], notes: list[str], at_once: int, tokens: int
) -> dict[str, Any]:
    """Add what a scenario has to say and a workload need not."""
    if "dtype" not in asked:
        notes.append("engine.dtype: bfloat16, since the workload leaves it to vLLM")
    if "max_model_len" not in asked:
        notes.append(f"engine.max_model_len: {tokens}, a prompt and its answer")
    ranks = asked.get("data_parallel_size", 1)
    least = -(-at_once // ranks)
    if asked.get("max_num_seqs", 0) < least:
        notes.append(f"engine.max_num_seqs: {least}, so that the whole load is in a batch")
        asked["max_num_seqs"] = least
    notes.append("engine.cudagraph_mode: as vLLM chooses it, captured at powers of two")
    sizes = [2**power for power in range(asked["max_num_seqs"].bit_length())]
    engine = {"dtype": "bfloat16", "max_model_len": tokens, **asked}
    graphs = {"compilation_mode": 3, "cudagraph_mode": "FULL_AND_PIECEWISE"}
    return {**engine, **graphs, "cudagraph_capture_sizes": sizes}
