"""A workload of vLLM's perf-eval (``workloads/*.yaml`` there) as scenarios, one for each load.

What has no place in a scenario is named, key by key: nothing is dropped in silence, and nothing
that was said otherwise is left as it was without a word.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.engine import EngineArgs
from hybridwatch.scenarios.fixes import NO_FIX
from hybridwatch.scenarios.load import comment_lines, table_lines, text_lines
from hybridwatch.scenarios.scenario import MIN_PERFORMANCE_TRIALS, Scenario
from hybridwatch.scenarios.validation import explain, quoted

_SAME: Final = (
    "dtype", "max_model_len", "max_num_seqs", "max_num_batched_tokens", "scheduling_policy",
    "mamba_cache_mode", "mamba_cache_dtype", "mamba_ssm_cache_dtype", "kv_cache_dtype",
    "block_size", "data_parallel_size", "num_gpu_blocks_override",
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
_WORKERS: Final = ("tensor_parallel_size", "pipeline_parallel_size")
_ONE_GPU: Final = "left to you, since the scenario runs on one GPU without it"


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
            word = name.replace("-", "_")
            reason = _ONE_GPU if _SHORT.get(word, word) in _WORKERS else _NO_KEY
            notes.append(f"{key}: not carried over: {reason}")
        elif field == _SPECULATION:
            asked[field] = {**asked.get(field, {}), **found}
        elif found != _AUTO and (wrong := _wrong(field, found)):
            notes.append(f"{key}: not carried over: {wrong}")
        elif found != _AUTO:
            asked[field] = found
    notes += _speculate(asked)
    return _completed_engine(asked, notes, at_once, tokens), notes


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
    least = {"dtype": "bfloat16", "max_model_len": 1, "max_num_seqs": 1}
    least |= {"cudagraph_mode": "NONE", "cudagraph_capture_sizes": ()}
    try:
        EngineArgs.model_validate({**least, field: value})
    except ValidationError as failure:
        return "; ".join(explain(EngineArgs, failure))
    return ""


def _speculate(asked: dict[str, Any]) -> Iterator[str]:
    given = asked.pop(_SPECULATION, None)
    if given is None:
        return
    key = f"vllm.serve_args --{_SPECULATION}"
    for name in given.keys() - _DRAFTS.keys():
        yield f"{key}.{name}: not carried over: {_NO_KEY}"
    table = {_DRAFTS[name]: value for name, value in given.items() if name in _DRAFTS}
    if wrong := _wrong("speculation", table):
        yield f"{key}: not carried over: {wrong}"
    else:
        asked["speculation"] = table


def _completed_engine(
    asked: dict[str, Any], notes: list[str], at_once: int, tokens: int
) -> dict[str, Any]:
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


_SEED: Final = 7
_WAVE: Final = {"requests": 1, "input_tokens": 24, "output_tokens": 1}
"""Nothing is counted in it; a workload of ours has one."""
_REASONS: Final = {
    "gpu": 'accelerator = "cuda" stands for every kind of GPU',
    "num_gpus": "an engine lies on one GPU",
    "nightly": "a policy says what is expected every night",
    "timeout_in_minutes": "--max-minutes says it for a run",
    "lm_eval": "a scenario states the number of documents of a task, and this does not",
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
    """A scenario made of a workload, and the file, with what was not carried over as comments."""

    scenario: Scenario
    text: str


@dataclass(frozen=True, slots=True)
class Carried:
    """What became of a workload; ``notes`` say ``key: what became of it``, one line each."""

    files: tuple[ScenarioFile, ...]
    notes: tuple[str, ...]


def parse_scenarios(path: Path) -> Carried:
    """Read a workload."""
    workload = _read(path)
    general = [*_others(workload), *_others(workload.vllm, "vllm.")]
    general += _others(workload.vllm_bench, "vllm_bench.")
    files, notes = [], list(general)
    for at, config in enumerate(workload.vllm_bench.configs):
        key = f"vllm_bench.configs[{at}]"
        if config.dataset != "random":
            why = f"dataset {config.dataset!r}, not random; a trace is named in workload.trace"
            notes.append(f"{key}: not carried over: {why}")
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
    lines = [*text_lines("why", facts.pop("why").splitlines())]
    lines += [*comment_lines(notes), *table_lines(facts)]
    lines += ["", "[engine]", *table_lines(content["engine"])]
    lines += ["", "[workload]", *table_lines({"seed": work["seed"]})]
    for wave in work["waves"]:
        lines += ["", "[[workload.waves]]", *table_lines(wave)]
    lines += ["", "[workload.generation]", *table_lines(work["generation"])]
    lines += ["", "[trials]", *table_lines(content["trials"]), "", "[expect]", ""]
    return "\n".join(lines)


def _word(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "unnamed"
