"""Rows of vLLM's perf-eval (``lib/ingest_perf.py`` there), one a line: what it posts one by one."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hybridwatch.errors import ExportError
from hybridwatch.formats.write.serving import Served, rows_read, served
from hybridwatch.records.run import Run


def to_perf_eval(runs: Iterable[Run]) -> bytes:
    """Give JSON lines.

    Rows that were ingested go out as they came in; other runs without the load client's JSON have
    none.

    Raises:
        ExportError: There is no row.
    """
    lines = [json.dumps(row) for run in runs for row in _rows(run)]
    if not lines:
        raise ExportError("perf-eval: expected a run with the JSON of its load client, found none")
    return ("\n".join(lines) + "\n").encode()


def has_rows(run: Run) -> bool:
    """Whether there is anything to write of a run."""
    return any(True for _ in _rows(run))


def _rows(run: Run) -> Iterator[Mapping[str, Any]]:
    yield from (row for row in rows_read(run) if "device" in row)
    yield from map(_row, served(run))


def _row(side: Served) -> dict[str, Any]:
    total, output = side.number("total_token_throughput"), side.number("output_throughput")
    gpus = side.ranks * (2 if side.is_disaggregated else 1)
    row = {
        "date": side.run.started_at.strftime("%Y-%m-%d %H:%M:%S"),
        "device": side.run.testbed.id,
        "conc": round(side.number("max_concurrency")),
        "image": side.build.label,
        "model": side.model,
        "framework": "vllm",
        "precision": side.precision,
        # Said in these words of every row there, whatever the engine did.
        "spec_decoding": "false",
        "disagg": "false",
        "isl": side.input_tokens,
        "osl": side.output_tokens,
        "is_multinode": "false",
        "tp": gpus,
        "ep": 1,
        "dp_attention": "false",
        "tput_per_gpu": total / gpus,
        "output_tput_per_gpu": output / gpus,
        "input_tput_per_gpu": (total - output) / gpus,
    }
    return row | dict(side.latencies())
