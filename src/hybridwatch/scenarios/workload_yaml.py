"""A workload of vLLM's perf-eval (``workloads/*.yaml`` there) as scenarios, one for each load.

A workload says how a server is started and which loads it gets; a scenario says it for one engine
on one GPU, in fewer words. What has no place there is named, key by key: nothing is dropped in
silence, and nothing that was said otherwise is left as it was without a word.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.fixes import NO_FIX
from hybridwatch.scenarios.scenario import MIN_PERFORMANCE_TRIALS, Scenario
from hybridwatch.scenarios.serve_args import parse_engine
from hybridwatch.scenarios.validation_text import explain, quoted
from hybridwatch.scenarios.written import comment_lines, table_lines, text_lines

_SEED: Final = 7
_WAVE: Final = {"requests": 1, "input_tokens": 24, "output_tokens": 1}
"""Nothing is counted in it; a workload of ours has one."""
_NO_KEY: Final = "a scenario has no such key"
_REASONS: Final = {
    "gpu": 'accelerator = "cuda" stands for every kind of GPU',
    "num_gpus": "an engine lies on one GPU",
    "nightly": "a policy says what is expected every night",
    "timeout_in_minutes": "--max-minutes says it for a run",
    "lm_eval": "a scenario names how many documents of a task are asked, and this does not",
    "vllm.image": "a build says which vLLM runs",
    "vllm.env": "a build says which variables its engine gets",
    "vllm_bench.metadata": "a run reads them off the machine",
    "vllm_bench.configs.args": "every scenario has the same arguments of the load client",
}
_INDEX: Final = re.compile(r"\[\d+\]")


class _Open(BaseModel):
    """A table of which only some keys matter here; the others are named."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)


class _Server(_Open):
    model: str
    serve_args: str = ""


class _Config(_Open):
    name: str
    input_len: Annotated[int, Field(ge=1)]
    output_len: Annotated[int, Field(ge=1)]
    num_prompts: int | list[int]
    max_concurrency: int | list[int]
    dataset: str = "random"
    backend: str | None = None
    repetitions: int = 1

    @property
    def loads(self) -> Iterator[tuple[int, int]]:
        """Each number of requests at once, and how many requests there are in all."""
        at_once, prompts = self.max_concurrency, self.num_prompts
        every = at_once if isinstance(at_once, list) else [at_once]
        totals = prompts if isinstance(prompts, list) else [prompts] * len(every)
        if len(totals) != len(every):
            raise ScenarioError(
                f"vllm_bench config {self.name}: num_prompts: expected {len(every)} numbers, one "
                f"for each max_concurrency, found {len(totals)}"
            )
        return zip(every, totals, strict=True)


class _Benchmarks(_Open):
    configs: list[_Config] = Field(default_factory=list)


class _Workload(_Open):
    name: str
    vllm: _Server
    vllm_bench: _Benchmarks = Field(default_factory=_Benchmarks)


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """A scenario made of a workload.

    Attributes:
        scenario: The scenario; its id is where it belongs below a folder of scenarios.
        text: The file, with what was not carried over as comments.
    """

    scenario: Scenario
    text: str


@dataclass(frozen=True, slots=True)
class Carried:
    """What became of a workload.

    Attributes:
        notes: What was not carried over, or otherwise, one line each: ``key: what became of it``.
    """

    files: tuple[ScenarioFile, ...]
    notes: tuple[str, ...]


def parse_scenarios(path: Path) -> Carried:
    """Read a workload.

    Raises:
        ScenarioError: It cannot be read, is no workload, has no load of random prompts, or has one
            that no scenario can say; one line for each wrong key.
    """
    workload = _read(path)
    general = [*_others(workload), *_others(workload.vllm, "vllm.")]
    general += _others(workload.vllm_bench, "vllm_bench.")
    files, notes = [], list(general)
    for at, config in enumerate(workload.vllm_bench.configs):
        key = f"vllm_bench.configs[{at}]"
        if config.dataset != "random":
            notes.append(f"{key}: not carried over: dataset {config.dataset!r}, not random")
            continue
        own = list(_of_config(config, key))
        for at_once, prompts in config.loads:
            try:
                file, said = _scenario(workload, config, (at_once, prompts), [*general, *own])
            except ValidationError as failure:
                place = f"{path}: {key}, max_concurrency {at_once}"
                lines = explain(Scenario, failure)
                raise ScenarioError("\n".join(f"{place}: {line}" for line in lines)) from None
            files.append(file)
            own += said
        notes += own
    if not files:
        raise ScenarioError(f"{path}: vllm_bench: expected a load of random prompts, found none")
    return Carried(tuple(files), tuple(dict.fromkeys(notes)))


def _read(path: Path) -> _Workload:
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise ScenarioError("YAML: needs pyyaml: pip install 'hybridwatch[measure]'") from error
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ScenarioError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise ScenarioError(f"{path}: expected a table of keys, found {quoted(content)}")
    try:
        return _Workload.model_validate(content)
    except ValidationError as error:
        lines = explain(_Workload, error)
        raise ScenarioError("\n".join(f"{path}: {line}" for line in lines)) from None


def _others(table: BaseModel, prefix: str = "") -> Iterator[str]:
    """Name the keys of a table that nothing here reads, those within them one by one."""
    for key, value in (table.model_extra or {}).items():
        name = f"{prefix}{key}"
        inner = value if isinstance(value, Mapping) else {}
        reason = _REASONS.get(_INDEX.sub("", name), _NO_KEY)
        for place in [f"{name}.{one}" for one in inner] or [name]:
            yield f"{place}: not carried over: {reason}"


def _of_config(config: _Config, key: str) -> Iterator[str]:
    yield from _others(config, f"{key}.")
    if config.backend not in {None, "openai"}:
        yield f"{key}.backend: not carried over: {config.backend!r}; prompts go to completions"
    least = MIN_PERFORMANCE_TRIALS
    if config.repetitions < least:
        yield f"{key}.repetitions: {least} for {config.repetitions}, the fewest that tell"


def _scenario(
    workload: _Workload, config: _Config, load: tuple[int, int], notes: Sequence[str]
) -> tuple[ScenarioFile, list[str]]:
    at_once, prompts = load
    tokens = config.input_len + config.output_len
    engine, said = parse_engine(workload.vllm.serve_args, at_once, tokens)
    generation = {"prompts": prompts, "max_concurrency": at_once, "seed": _SEED}
    generation |= {"input_tokens": config.input_len, "output_tokens": config.output_len}
    least = MIN_PERFORMANCE_TRIALS
    content = {
        "why": f"The load {config.name} of {workload.name}, {at_once} at once: how fast is it?\n",
        "version": 1,
        "fix": NO_FIX,
        "accelerator": "cuda",
        "model": workload.vllm.model,
        "engine": engine,
        "workload": {"seed": _SEED, "waves": [_WAVE], "generation": generation},
        "trials": {
            "contract": 0,
            "performance": max(config.repetitions, least),
            "host_sync": least,
        },
        "expect": {},
    }
    name = f"{_word(workload.name)}/{_word(config.name)}-conc-{at_once}"
    scenario = Scenario.model_validate({**content, "id": name})
    return ScenarioFile(scenario, _text(content, [*notes, *said])), said


def _text(content: Mapping[str, Any], notes: Sequence[str]) -> str:
    facts = {key: value for key, value in content.items() if not isinstance(value, dict)}
    work = content["workload"]
    lines = [
        *text_lines("why", facts.pop("why").splitlines()),
        *comment_lines(notes),
        *table_lines(facts),
    ]
    lines += ["", "[engine]", *table_lines(content["engine"])]
    lines += ["", "[workload]", *table_lines({"seed": work["seed"]})]
    for wave in work["waves"]:
        lines += ["", "[[workload.waves]]", *table_lines(wave)]
    lines += ["", "[workload.generation]", *table_lines(work["generation"])]
    lines += ["", "[trials]", *table_lines(content["trials"]), "", "[expect]", ""]
    return "\n".join(lines)


def _word(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "unnamed"
