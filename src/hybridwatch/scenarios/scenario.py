"""The type of a scenario file, field by field, and the rules that hold between fields.

Bounds are there to catch slips (a swapped number, a unit), not to say what is wise. Types are
strict: ``"7"`` is not a number and ``true`` is not 1.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, PrivateAttr
from pydantic_core import PydanticCustomError

from hybridwatch.metrics import Direction, Kind, Metric, find_metric
from hybridwatch.scenarios.engine import (
    EngineArgs,
    contradictions_of_adapters,
    contradictions_of_graphs,
    contradictions_of_replayssm,
    contradictions_of_workers,
)
from hybridwatch.scenarios.fixes import NO_FIX, FixId, GuardedFix, catalogue
from hybridwatch.scenarios.validation import Concurrency, Contradiction, Count, Part, quoted
from hybridwatch.scenarios.workload import (
    Sweep,
    Workload,
    contradictions_of_sweep,
    contradictions_of_waves,
)

MIN_PERFORMANCE_TRIALS: Final = 7
"""Per side. An exact rank test of 7 against 7 can reach p = 2/3432, so a verdict survives the
false-discovery control over a whole report."""

ACCURACY: Final = "accuracy"
"""Family of the metrics that an lm-eval task gives: ``accuracy.<task>``."""


def _known_metric(metric_id: str) -> str:
    try:
        find_metric(metric_id)
    except KeyError:
        raise PydanticCustomError("metric", "no metric has this id") from None
    return metric_id


MetricId = Annotated[str, AfterValidator(_known_metric)]
RecurrentKind = Literal["mamba1", "mamba2", "short_convolution", "gated_delta_net"]
"""Layers that keep a state, as the plugin names them (``hybridwatch_engine.replays``)."""
Trials = Annotated[int, Field(ge=1, le=1000)]
Accelerator = Literal["cpu", "cuda"]
"""What an engine build computes on."""
TaskName = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9]+(_[a-z0-9]+)*$", description="lower-case words joined by underscores"
    ),
]


class Accuracy(Part):
    """Which tasks are answered, each giving the metric ``accuracy.<task>``."""

    tasks: tuple[TaskName, ...] = Field(strict=False, min_length=1)
    documents: Count
    max_concurrency: Concurrency


class TrialCounts(Part):
    """Trials of each phase and side; accuracy needs none, its documents are its samples.

    ``host_sync`` passes have the host-read probe on, which slows the engine. The timed passes are
    spread evenly over the ``starts``; at most one for each pass.
    """

    contract: Annotated[int, Field(ge=0, le=1000)]
    performance: Annotated[int, Field(ge=MIN_PERFORMANCE_TRIALS, le=1000)]
    host_sync: Trials
    starts: Trials = 1


class Expect(Part):
    """What a healthy engine gives; a run that differs has failed, however fast it was.

    ``exactly`` has metrics without noise (exact and count) with their only right value,
    ``at_least`` those that are better when higher; ``scenarios/README.md`` has the other keys.
    """

    exactly: Mapping[MetricId, float] = Field(default_factory=dict)
    at_least: Mapping[MetricId, float] = Field(default_factory=dict)
    replayed_layers: Mapping[RecurrentKind, Count] = Field(default_factory=dict)
    decoding_rows: Count | None = None
    oracle_within: Annotated[float, Field(gt=0, le=0.5)] | None = None


_Release = Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$", description="a release such as 0.23.0")]
_Revision = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][\w./-]*$", description="a commit, tag or branch")
]
_ScenarioId = Annotated[
    str, Field(pattern=r"^[a-z0-9-]+/[a-z0-9-]+$", description="the id of a scenario")
]


class Scenario(Part):
    """One declared experiment; ``scenarios/README.md`` says what each key means.

    ``id`` is the path below the scenario folder without suffix; the loader gives it, not the file.
    """

    id: str
    why: Annotated[str, Field(pattern=r"\S", description="a text")]
    version: Annotated[int, Field(ge=1)]
    fix: GuardedFix
    fix_v2: GuardedFix | None = None
    requires: tuple[FixId, ...] = Field(default=(), strict=False)
    harm: Literal["answers", "state", "death"] = "answers"
    accelerator: Accelerator | None = None
    since: _Release | None = None
    until: _Release | None = None
    model: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?$",
            description="a folder of models/ or owner/name",
        ),
    ]
    revision: _Revision | None = None
    engine: EngineArgs
    workload: Workload
    accuracy: Accuracy | None = None
    oracle: _ScenarioId | None = None
    sweep: Sweep | None = None
    trials: TrialCounts
    expect: Expect
    _written_fix: str | None = PrivateAttr(default=None)

    def _contradictions(self) -> Iterator[Contradiction]:
        yield from contradictions_of_waves(self.workload)
        yield from _contradictions_of_lengths(self)
        yield from contradictions_of_sweep(self.sweep, self.workload.generation)
        yield from contradictions_of_graphs(self.engine)
        yield from contradictions_of_replayssm(self.engine)
        yield from contradictions_of_workers(self.engine)
        yield from contradictions_of_adapters(self.engine)
        if self.since and self.until and not self.starts_on(self.until):
            wanted = f"since ({self.since}) or a later release"
            yield "until", f"expected {wanted}, found {self.until}"
        yield from _contradictions_of_model(self)
        yield from _contradictions_of_batches(self)
        yield from _contradictions_of_ranks(self)
        yield from _contradictions_of_scheduling(self)
        yield from _contradictions_of_expectations(self)

    @property
    def answered_by(self) -> str:
        """The scenario whose right answers are held against this one's."""
        return self.oracle or self.id

    @property
    def on_hub(self) -> bool:
        """Whether the model is one of the hub's."""
        return "/" in self.model

    @property
    def is_of_speed_alone(self) -> bool:
        """Whether nothing that can be right or wrong is looked at, so that no control shows it."""
        return self.trials.contract == 0 and self.accuracy is None

    def on(self, model_runner: str) -> Self:
        """Give it with the ``fix`` of a model runner; the digest stays, so two can be compared."""
        if model_runner != "v2" or self.fix_v2 is None:
            return self
        found = self.model_copy(update={"fix": self.fix_v2})
        found._written_fix = self.written_fix  # noqa: SLF001 - of its own class
        return found

    @property
    def written_fix(self) -> str:
        """What the file calls ``fix``, whatever the model runner."""
        return self._written_fix or self.fix

    @property
    def guarded(self) -> tuple[str, ...]:
        """Every fix whose removal it must see, on one model runner or the other."""
        named = dict.fromkeys((self.written_fix, self.fix_v2 or NO_FIX))
        return tuple(fix for fix in named if fix != NO_FIX)

    @property
    def needs_v1(self) -> bool:
        """Whether model runner V2 refuses it: it has no cache mode ``all``."""
        return self.engine.mamba_cache_mode == "all"

    @property
    def is_about_v1(self) -> bool:
        """Whether the fault that it looks for is one that model runner V1 alone can have."""
        fix = catalogue().get(self.written_fix)
        return self.fix_v2 is None and fix is not None and fix.is_of_v1

    @property
    def has_known_bad(self) -> bool:
        """Whether there is a fix whose removal it must see."""
        return self.fix != NO_FIX and not self.is_of_speed_alone

    @property
    def slow_control(self) -> str | None:
        """The planted fault that its curve must distinguish; None without one."""
        return None if self.sweep is None else self.sweep.known_bad

    @property
    def needed_fixes(self) -> tuple[str, ...]:
        """The fixes that a healthy engine has: its own, if it has one, and what it requires."""
        return tuple(fix for fix in (self.fix, *self.requires) if fix != NO_FIX)

    def fits(self, accelerator: str) -> bool:
        """Whether a build for an accelerator can run it."""
        return self.accelerator in {None, accelerator}

    def starts_on(self, release: str) -> bool:
        """Whether an engine of a vLLM release comes up for it."""
        asked = list_numbers(release)
        is_old_enough = self.until is None or asked <= list_numbers(self.until)
        return is_old_enough and (self.since is None or asked >= list_numbers(self.since))

    def without_bounds(self) -> Self:
        """Give the same scenario for whatever release."""
        return self.model_copy(update={"since": None, "until": None})

    @property
    def summary(self) -> str:
        """The first sentence of ``why``, on one line."""
        text = " ".join(self.why.split())
        for mark in (". ", "! ", "? "):
            text = text.split(mark, maxsplit=1)[0] + (mark.strip() if mark in text else "")
        return text


def list_numbers(release: str) -> tuple[int, ...]:
    """Give the numbers of a release of vLLM, so that two can be put in order."""
    return tuple(map(int, re.findall(r"\d+", release)[:3]))


def _contradictions_of_lengths(scenario: Scenario) -> Iterator[Contradiction]:
    room, load = scenario.engine.max_model_len, scenario.workload.generation
    whole = load.replay.longest_request if load.replay else load.input_tokens + load.output_tokens
    totals = {"workload.generation": whole}
    before = 0
    for key, wave in scenario.workload.all_waves:
        before = totals[key] = wave.longest_request + (before if wave.continues else 0)
    for key, total in totals.items():
        if total > room:
            most = f"at most engine.max_model_len ({room})"
            yield key, f"expected input_tokens + output_tokens {most}, found {total}"


def _contradictions_of_model(scenario: Scenario) -> Iterator[Contradiction]:
    if scenario.revision is not None and not scenario.on_hub:
        model = quoted(scenario.model)
        yield "revision", f"expected none with a model of our own ({model})"
    if scenario.engine.load_format is None:
        return
    if scenario.on_hub:
        yield "engine.load_format", f"expected none with a model of the hub ({scenario.model})"
    if scenario.accuracy is not None:
        yield "accuracy", "expected none with engine.load_format dummy: its answers say nothing"


def _contradictions_of_batches(scenario: Scenario) -> Iterator[Contradiction]:
    engine, load = scenario.engine, scenario.workload.generation
    ranks = engine.data_parallel_size
    share = f" of each of {ranks} ranks" if ranks > 1 else ""
    # What a trace sends while the batch is full waits, as it would in any server.
    wanted = {} if load.replay else {"workload.generation": load.max_concurrency}
    if scenario.accuracy is not None:
        wanted["accuracy"] = scenario.accuracy.max_concurrency
    for key, value in wanted.items():
        if value > engine.max_num_seqs * ranks:
            most = f"engine.max_num_seqs ({engine.max_num_seqs}){share}"
            yield f"{key}.max_concurrency", f"expected at most {most}, found {value}"
    if load.prompts < load.max_concurrency:
        least = f"max_concurrency ({load.max_concurrency})"
        yield "workload.generation.prompts", f"expected at least {least}, found {load.prompts}"
    budget = engine.max_num_batched_tokens
    if budget is not None and budget < engine.max_num_seqs:
        least = f"max_num_seqs ({engine.max_num_seqs})"
        yield "engine.max_num_batched_tokens", f"expected at least {least}, found {budget}"


def _contradictions_of_ranks(scenario: Scenario) -> Iterator[Contradiction]:
    ranks, idle = scenario.engine.data_parallel_size, scenario.workload.idle_dummy_batches
    if ranks > 1 and scenario.engine.disaggregated:
        yield "engine.disaggregated", f"expected false with data_parallel_size {ranks}, found true"
    if ranks > 1 and idle:
        wanted = f"0 with engine.data_parallel_size {ranks}"
        yield "workload.idle_dummy_batches", f"expected {wanted}, found {idle}"
    for key, wave in scenario.workload.all_waves:
        if wave.rank is not None and (ranks == 1 or wave.rank >= ranks):
            most = f"less than engine.data_parallel_size ({ranks})"
            wanted = "none with engine.data_parallel_size 1" if ranks == 1 else most
            yield f"{key}.rank", f"expected {wanted}, found {wave.rank}"


def _contradictions_of_scheduling(scenario: Scenario) -> Iterator[Contradiction]:
    engine = scenario.engine
    several = engine.disaggregated or engine.data_parallel_size > 1
    ahead = engine.stages > 1
    own = engine.max_num_batched_tokens
    for key, wave in scenario.workload.all_waves:
        for name, wanted in (
            ("arrival", wave.arrival == "steps"),
            ("aborts", bool(wave.aborts)),
            ("overlap_after_steps", wave.overlap_after_steps is not None),
            ("token_budget", wave.token_budget is not None),
        ):
            if several and wanted:
                yield f"{key}.{name}", "expected an engine with one scheduler, whose steps count"
            elif ahead and wanted:
                stages = f"pipeline_parallel_size ({engine.stages})"
                yield f"{key}.{name}", f"expected none with engine.{stages}: its steps overlap"
        if own is not None and (wave.token_budget or 0) > own:
            most = f"at most engine.max_num_batched_tokens ({own})"
            yield f"{key}.token_budget", f"expected {most}, found {wave.token_budget}"
        for unknown in sorted({*wave.adapters} - {"", *engine.lora_modules}):
            served = f'"" or one of engine.lora_modules {quoted(engine.lora_modules)}'
            yield f"{key}.adapters", f"expected {served}, found {quoted(unknown)}"
        if wave.priority != 0 and engine.scheduling_policy != "priority":
            yield f"{key}.priority", 'expected only with engine.scheduling_policy "priority"'


def _contradictions_of_expectations(scenario: Scenario) -> Iterator[Contradiction]:
    tasks = scenario.accuracy.tasks if scenario.accuracy is not None else ()
    expect = scenario.expect
    if len(set(tasks)) < len(tasks):
        yield "accuracy.tasks", f"expected each task once, found {quoted(tasks)}"
    if not (expect.exactly or expect.at_least or scenario.is_of_speed_alone):
        yield "expect", "expected at least one metric under exactly or at_least, found none"
    most, rows = scenario.engine.max_num_seqs, expect.decoding_rows or 0
    if rows > most:
        yield "expect.decoding_rows", f"expected at most engine.max_num_seqs ({most}), found {rows}"
    for metric_id in (*expect.exactly, *expect.at_least):
        family, _, task = metric_id.partition(".")
        if family == ACCURACY and task not in tasks:
            yield f'expect."{metric_id}"', f'"{task}" is not in accuracy.tasks {quoted(tasks)}'
    for metric_id in expect.exactly:
        if not find_metric(metric_id).kind.can_be_expected:
            why = "only exact metrics and counts can be expected exactly"
            yield f'expect.exactly."{metric_id}"', f"this metric is noisy; {why}"
    for metric_id, bound in expect.at_least.items():
        yield from _contradictions_of_bound(find_metric(metric_id), bound)


def _contradictions_of_bound(metric: Metric, bound: float) -> Iterator[Contradiction]:
    key = f'expect.at_least."{metric.id}"'
    if metric.better is not Direction.HIGHER:
        yield key, "lower is better for this metric, so it has no lower bound"
    elif metric.kind is Kind.PROPORTION and not 0 <= bound <= 1:
        yield key, f"expected a number from 0 to 1, found {bound:g}"
