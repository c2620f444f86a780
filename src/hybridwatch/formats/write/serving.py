"""Rows of InferenceX and vLLM's perf-eval, made of what the load client reported of a run's side.

Their rows are one per load: numbers of several trials are their medians, which is how vLLM's
perf-eval joins its repetitions. InferenceX (``utils/process_result.py`` there) gets a file for each
build, since it does not know a point by its build: two builds in one file would be one point twice,
which its own check refuses. perf-eval (``lib/ingest_perf.py`` there) posts rows one by one.

Power is left out. Its fields are integrals over a window, and a record has medians of readings.
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from hybridwatch.errors import ExportError
from hybridwatch.records.file_parts import safe_name
from hybridwatch.records.identity import EngineBuild
from hybridwatch.records.run import UNKNOWN, Phase, Run

_MILLISECONDS: Final = "_ms"
_NEEDED: Final = (
    "completed", "total_token_throughput", "output_throughput", "max_concurrency",
    "total_input_tokens", "total_output_tokens", "median_tpot_ms",
)  # fmt: skip
"""Without these there is no row: rates, load, and the interactivity that its chart is about."""
_PRECISIONS: Final = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
_HUB_NAME: Final = re.compile(r"\w[\w.-]*/\w[\w.-]*")
"""Two names, neither of which begins like ``.``, ``..`` or ``~``."""
_SEPARATOR: Final = re.compile(r"[/\\]")
_PARTS: Final = ("prefill", "decode")
_LAYOUT: Final = ("tp", "pp", "dcp_size", "pcp_size", "ep", "dp_attention")
_IDENTITY: Final = (
    "hw", "infmax_model_prefix", "framework", "precision", "spec_decoding", "disagg", "isl", "osl",
    "conc", "scenario_type", "kv_offloading", *_LAYOUT,
    *(f"{part}_{key}" for part in _PARTS for key in (*_LAYOUT, "num_workers")),
)  # fmt: skip
"""InferenceX knows a point by its machine, model, precision, layout and load."""


@dataclass(frozen=True, slots=True)
class Served:
    """One side of a run under its timed load, with the client's JSON of each trial."""

    run: Run
    build: EngineBuild
    results: Sequence[Mapping[str, Any]]

    def number(self, key: str) -> float:
        """Give the median of a number that every trial has."""
        return float(median(result[key] for result in self.results))

    @property
    def model(self) -> str:
        """The model's name, without the folders of a machine."""
        return _without_folders(str(self.results[0].get("model_id", UNKNOWN)))

    @property
    def input_tokens(self) -> int:
        """Tokens of a prompt, on average."""
        return round(self.number("total_input_tokens") / self.number("completed"))

    @property
    def output_tokens(self) -> int:
        """Tokens of an answer, on average."""
        return round(self.number("total_output_tokens") / self.number("completed"))

    @property
    def precision(self) -> str:
        """Type of the activations, as these tools write it."""
        dtype = self.build.flags.get("dtype", UNKNOWN)
        return _PRECISIONS.get(dtype, dtype)

    @property
    def ranks(self) -> int:
        """Data-parallel ranks."""
        return self._size("data")

    @property
    def workers(self) -> tuple[int, int]:
        """Ranks of tensor parallelism, and stages of the pipeline."""
        return self._size("tensor"), self._size("pipeline")

    @property
    def gpus(self) -> int:
        """GPUs of one engine; a processor counts as one for each of its ranks."""
        return self.ranks * math.prod(self.workers)

    def _size(self, kind: str) -> int:
        return int(self.build.flags.get(f"{kind}_parallel_size", 1))

    @property
    def is_disaggregated(self) -> bool:
        """Whether two engines shared the work."""
        return self.build.flags.get("disaggregated") == "True"

    def latencies(self) -> Iterator[tuple[str, float]]:
        """Yield times in seconds, and interactivity: tokens per second that a user sees."""
        for key in self.results[0]:
            are_numbers = all(_is_number(result.get(key)) for result in self.results)
            if key.endswith(_MILLISECONDS) and are_numbers:
                name, value = key.removesuffix(_MILLISECONDS), self.number(key)
                yield name, value / 1000
                # One over a spread means nothing.
                if name.endswith("_tpot") and value > 0 and not name.startswith("std_"):
                    yield name.replace("tpot", "intvty"), 1000 / value


def _served(run: Run) -> Iterator[Served]:
    """Yield sides with all of a row; on how many GPUs another tool measured is not known."""
    if run.source is not None:
        return
    for side, build in enumerate(run.builds):
        trials = (trial for trial in run.measured(side) if trial.phase is Phase.PERFORMANCE)
        results = [trial.client_result or {} for trial in trials]
        has_rows = all(
            _is_number(result.get(key)) and result[key] > 0 for result in results for key in _NEEDED
        )
        if results and has_rows:
            yield Served(run, build, results)


def _rows_read(run: Run) -> list[Mapping[str, Any]]:
    if run.source is None or run.source.format != "inferencex":
        return []
    return [trial.client_result for trial in run.trials if trial.client_result]


def find_model(run: Run) -> str:
    """Name the model, which only the load client's own JSON has."""
    results = (trial.client_result or {} for trial in run.trials)
    names = (result.get("model_id") or result.get("model") for result in results)
    return _without_folders(str(next(filter(None, names), ""))) or UNKNOWN


def _without_folders(model: str) -> str:
    """Leave the last name of a path; what the model hub calls ``owner/name`` stays."""
    if _HUB_NAME.fullmatch(model):
        return model
    return _SEPARATOR.split(model.rstrip("/\\"))[-1]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def to_inferencex(runs: Iterable[Run]) -> dict[str, bytes]:
    """Give rows by file: those of one build, a list, in which no point is there twice."""
    files: defaultdict[str, dict[str, tuple[Run, Mapping[str, Any]]]] = defaultdict(dict)
    for run in runs:
        for label, row in inferencex_rows(run):
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


def inferencex_rows(run: Run) -> list[tuple[str, Mapping[str, Any]]]:
    """Give a run's rows, each with its build; those that were ingested go out as they came in."""
    read = [(run.builds[0].label, row) for row in _rows_read(run) if "hw" in row]
    return read + [(side.build.label, _inferencex_row(side)) for side in _served(run)]


def _inferencex_row(side: Served) -> dict[str, Any]:
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
    row |= _pair() if side.is_disaggregated else _one_node(side)
    in_all = len(_PARTS) * side.gpus if side.is_disaggregated else side.gpus
    return row | _measured(side, in_all, side.gpus)


def _one_node(side: Served) -> dict[str, Any]:
    """A processor counts as one GPU; ranks with requests of their own are its DP attention."""
    tensor, stages = side.workers
    layout = {"tp": side.ranks * tensor, "pp": stages, "dcp_size": 1, "pcp_size": 1, "ep": 1}
    return {**layout, "dp_attention": str(side.ranks > 1).lower()}


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


def to_perf_eval(runs: Iterable[Run]) -> bytes:
    """Give JSON lines."""
    lines = [json.dumps(row) for run in runs for row in perf_eval_rows(run)]
    if not lines:
        raise ExportError("perf-eval: expected a run with the JSON of its load client, found none")
    return ("\n".join(lines) + "\n").encode()


def perf_eval_rows(run: Run) -> list[Mapping[str, Any]]:
    """Give a run's rows; those that were ingested go out as they came in."""
    read = [row for row in _rows_read(run) if "device" in row]
    return read + [_perf_eval_row(side) for side in _served(run)]


def _perf_eval_row(side: Served) -> dict[str, Any]:
    gpus = side.gpus * (2 if side.is_disaggregated else 1)
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
    }
    return row | _measured(side, gpus, gpus)


def _measured(side: Served, gpus: int, decoding: int) -> dict[str, float]:
    """Give rates, divided by the GPUs that all tokens and that those put out came from; times."""
    total, output = side.number("total_token_throughput"), side.number("output_throughput")
    return {
        "tput_per_gpu": total / gpus,
        "output_tput_per_gpu": output / decoding,
        "input_tput_per_gpu": (total - output) / decoding,
        **dict(side.latencies()),
    }
