"""Rows of InferenceX (``utils/process_result.py`` there), a file for each build.

InferenceX knows a point by its machine, model, precision, layout and load, and not by its build:
two builds in one file would be one point twice, which its own check refuses.

Power is left out. Its fields are integrals over a window, and a record has medians of readings.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from hybridwatch.errors import ExportError
from hybridwatch.formats.write.serving import Served, rows_read, served
from hybridwatch.records.file_parts import safe_name
from hybridwatch.records.run import Run

_PARTS: Final = ("prefill", "decode")
_LAYOUT: Final = ("tp", "pp", "dcp_size", "pcp_size", "ep", "dp_attention")
_IDENTITY: Final = (
    "hw", "infmax_model_prefix", "framework", "precision", "spec_decoding", "disagg", "isl", "osl",
    "conc", "scenario_type", "kv_offloading", *_LAYOUT,
    *(f"{part}_{key}" for part in _PARTS for key in (*_LAYOUT, "num_workers")),
)  # fmt: skip


def to_inferencex(runs: Iterable[Run]) -> dict[str, bytes]:
    """Give rows by file: those of one build, a list.

    Rows that were ingested go out as they came in; other runs without the load client's JSON have
    none.

    Raises:
        ExportError: There is no row, or two of one file are the same point to InferenceX.
    """
    files: defaultdict[str, dict[str, tuple[Run, Mapping[str, Any]]]] = defaultdict(dict)
    for run in runs:
        for label, row in _rows(run):
            key = json.dumps([row.get(name) for name in _IDENTITY])
            other, _ = files[f"{safe_name(label)}.json"].setdefault(key, (run, row))
            # The sides of an A/A run are one build, and the first speaks.
            if other is not run:
                raise ExportError(
                    f"{run.scenario.id}, {label}: to InferenceX runs {other.id} and {run.id} are "
                    "one point: name one, or latest"
                )
    if not files:
        raise ExportError("InferenceX: expected a run with the JSON of its load client, found none")
    return {
        name: (json.dumps([row for _, row in rows.values()], indent=2) + "\n").encode()
        for name, rows in files.items()
    }


def has_rows(run: Run) -> bool:
    """Whether there is anything to write of a run."""
    return any(True for _ in _rows(run))


def _rows(run: Run) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from ((run.builds[0].label, row) for row in rows_read(run) if "hw" in row)
    yield from ((side.build.label, _row(side)) for side in served(run))


def _row(side: Served) -> dict[str, Any]:
    total, output = side.number("total_token_throughput"), side.number("output_throughput")
    row = {
        "hw": side.run.testbed.id,
        "conc": round(side.number("max_concurrency")),
        "image": side.build.label,
        "model": side.model,
        "infmax_model_prefix": side.model.rpartition("/")[2].lower(),
        "framework": "vllm",
        "precision": side.precision,
        "spec_decoding": _speculation(side),
        "disagg": side.is_disaggregated,
        "recipe_fingerprint": side.run.scenario.digest,
        "isl": side.input_tokens,
        "osl": side.output_tokens,
        "is_multinode": side.is_disaggregated,
    }
    row |= _pair() if side.is_disaggregated else _one_node(side.ranks)
    gpus = side.ranks
    in_all = gpus * len(_PARTS) if side.is_disaggregated else gpus
    row |= {
        "tput_per_gpu": total / in_all,
        "output_tput_per_gpu": output / gpus,
        "input_tput_per_gpu": (total - output) / gpus,
    }
    return row | dict(side.latencies())


def _one_node(ranks: int) -> dict[str, Any]:
    """A processor counts as one GPU; ranks with requests of their own are its DP attention."""
    layout = {"tp": ranks, "pp": 1, "dcp_size": 1, "pcp_size": 1, "ep": 1}
    return {**layout, "dp_attention": str(ranks > 1).lower()}


def _pair() -> dict[str, Any]:
    """Two engines of one GPU each: InferenceX knows them as a deployment on several nodes."""
    layout = {"tp": 1, "pp": 1, "dcp_size": 1, "pcp_size": 1, "ep": 1, "num_workers": 1}
    parts: dict[str, Any] = {
        f"{part}_{key}": value for part in _PARTS for key, value in layout.items()
    }
    parts |= {f"{part}_dp_attention": "false" for part in _PARTS}
    return parts | {f"num_{part}_gpu": 1 for part in _PARTS}


def _speculation(side: Served) -> str:
    written = side.build.flags.get("speculation")
    return str(json.loads(written)["method"]) if written else "none"
