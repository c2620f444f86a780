"""What the load client told of one side of a run, for tools whose rows are made of its JSON.

Their rows are one per load: numbers of several trials are their medians, which is how vLLM's
perf-eval joins its repetitions.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

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


@dataclass(frozen=True, slots=True)
class Served:
    """One side of a run under its timed load.

    Attributes:
        results: The client's JSON of each trial, all with what a row needs.
    """

    run: Run
    build: EngineBuild
    results: Sequence[Mapping[str, Any]]

    def number(self, key: str) -> float:
        """Give the median of a number that every trial has."""
        return float(median(result[key] for result in self.results))

    @property
    def model(self) -> str:
        """The model's name, without the folders of a machine."""
        return without_folders(str(self.results[0].get("model_id", UNKNOWN)))

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
        return int(self.build.flags.get("data_parallel_size", 1))

    @property
    def is_disaggregated(self) -> bool:
        """Whether two engines shared the work."""
        return self.build.flags.get("disaggregated") == "True"

    def latencies(self) -> Iterator[tuple[str, float]]:
        """Yield times in seconds, and interactivity: tokens per second that a user sees."""
        for key in self.results[0]:
            if key.endswith(_MILLISECONDS) and all(map(_is_number, self._column(key))):
                name, value = key.removesuffix(_MILLISECONDS), self.number(key)
                yield name, value / 1000
                # One over a spread means nothing.
                if name.endswith("_tpot") and value > 0 and not name.startswith("std_"):
                    yield name.replace("tpot", "intvty"), 1000 / value

    def _column(self, key: str) -> list[Any]:
        return [result.get(key) for result in self.results]


def served(run: Run) -> Iterator[Served]:
    """Yield the sides of a run of which the client's JSON is kept and says what a row needs.

    None of a run that another tool measured: it is not known on how many GPUs.
    """
    if run.source is not None:
        return
    for side, build in enumerate(run.builds):
        trials = (trial for trial in run.measured(side) if trial.phase is Phase.PERFORMANCE)
        results = [trial.client_result or {} for trial in trials]
        if results and all(map(_has_a_row, results)):
            yield Served(run, build, results)


def rows_read(run: Run) -> list[Mapping[str, Any]]:
    """Give the rows that an ingested run was read from, as they were."""
    if run.source is None or run.source.format != "inferencex":
        return []
    return [trial.client_result for trial in run.trials if trial.client_result]


def find_model(run: Run) -> str:
    """Name the model, which only the load client's own JSON has."""
    results = (trial.client_result or {} for trial in run.trials)
    names = (result.get("model_id") or result.get("model") for result in results)
    return without_folders(str(next(filter(None, names), ""))) or UNKNOWN


def without_folders(model: str) -> str:
    """Leave the last name of a path; what the model hub calls ``owner/name`` stays."""
    if _HUB_NAME.fullmatch(model):
        return model
    return _SEPARATOR.split(model.rstrip("/\\"))[-1]


def _has_a_row(result: Mapping[str, Any]) -> bool:
    return all(_is_number(result.get(key)) and result[key] > 0 for key in _NEEDED)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
