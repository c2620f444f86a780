"""Measures one trial of each phase; refuses one that put nothing to the test."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Final

from hybridwatch.engines.control import UNSUPPORTED
from hybridwatch.errors import MeasurementError
from hybridwatch.measurement.completions import (
    Reply,
    count_wrong_streams,
    is_another,
    unrepeated,
    with_streams,
)
from hybridwatch.measurement.load import (
    TrialContext,
    run_load,
    run_prelude,
    samples_of_client,
    samples_of_steps,
    sweep,
    work_of_load,
)
from hybridwatch.measurement.memory import (
    begin_memory,
    read_capacity,
    samples_of_memory,
    samples_of_start,
    time_first_request,
)
from hybridwatch.measurement.objective import search_objective
from hybridwatch.measurement.right_answers import checked, count_grammar_breaks
from hybridwatch.measurement.waves import drive_replies
from hybridwatch.metrics import (
    DUET_CPU_TIME,
    GRAMMAR_BREAKS,
    UNREPEATED_TOKENS,
    WRONG_STREAMS,
    WRONG_TOKENS,
)
from hybridwatch.records.readings import CLOCK_DIGITS
from hybridwatch.records.run import (
    Answer,
    CallSite,
    Completion,
    Curve,
    HostWork,
    Phase,
    Sample,
    StepPhase,
    near_tie_within,
)
from hybridwatch.scenarios.expansion import PlannedWave, expand
from hybridwatch.scenarios.fixes import NO_FIX, catalogue
from hybridwatch.system.home import home


def require_occasion(fix: str, counts: Mapping[str, Any], unwatched: Mapping[str, str]) -> None:
    """Refuse a trial in which what a fix mends could not have been broken."""
    if fix == NO_FIX:
        return
    # A counter: a rule that was never put to the test proves nothing.
    occasions = catalogue()[fix].occasion
    if occasions not in unwatched and not counts[occasions]:
        raise MeasurementError(
            f"the waves gave no occasion to break what {fix} mends: expected {occasions} above 0, "
            f"found {counts}; look at workload.waves and engine.cudagraph_capture_sizes"
        )


def require_replayed_layers(
    counts: Mapping[str, Any],
    unwatched: Mapping[str, str],
    needed: Iterable[tuple[str, int]],
    stages: int = 1,
) -> None:
    """Refuse tokens of replays without so many layers of each ``needed`` kind in each graph.

    The stages of a pipeline replay one graph between them, each with its own layers.
    """
    graphs, layers = counts.get("graphs_replayed", 0) // stages, counts.get("layers_replayed", {})
    if graphs and not layers:
        reason = f": {find_first_reason(unwatched)}" if unwatched else ""
        raise MeasurementError(
            f"the replay captured 0 recurrent layers, so each of its {graphs} graphs ran as "
            f"without graphs, and equal tokens would prove nothing{reason}"
        )
    for kind, least in needed:
        if not graphs or layers.get(kind, 0) < least * graphs:
            raise MeasurementError(
                f"expect.replayed_layers.{kind}: expected {least} in each replayed graph, found "
                f"{_found(layers, graphs)}"
            )


def _found(layers: Mapping[str, int], graphs: int) -> str:
    if not graphs:
        return "that none was replayed"
    return ", ".join(f"{number / graphs:g} {kind}" for kind, number in layers.items())


def require_decoding_rows(
    counts: Mapping[str, Any], unwatched: Mapping[str, str], most: int
) -> None:
    """Refuse a trial without a step that decodes some number of requests from 1 to ``most``."""
    seen, why = counts.get("decoding_rows", {}), unwatched.get("decoding_rows")
    if missed := [str(rows) for rows in range(1, most + 1) if not seen.get(str(rows))]:
        raise MeasurementError(
            f"expect.decoding_rows: expected steps in which each number of requests from 1 to "
            f"{most} decodes, found none of {', '.join(missed)}{f': {why}' if why else ''}"
        )


def find_first_reason(unwatched: Mapping[str, str]) -> str:
    """Say why a probe could not watch something."""
    return next(iter(unwatched.values()), "the probe counts none")


TASKS_TIMEOUT_S: Final = 300.0
HUB_TASKS_TIMEOUT_S: Final = 3600.0
"""A real model answers a thousand questions of as many tokens as it likes."""
SITES_KEPT: Final = 20
"""Call sites that a trial keeps, those with the most reads."""

CONTRACTS: Final = (
    "padded_rows_prefilling",
    "slots_off_block_table",
    "prefills_in_decode_graph",
    "blocks_in_dummy_runs",
    "replay_off_block_tables",
    "replay_off_slot_mappings",
    "replay_off_seq_lens",
    "replay_off_query_starts",
    "replay_off_accepted",
    "replay_off_prompts",
    "replay_off_initial_states",
    "replay_off_chunks",
    "drafts_before_state",
    "states_off",
    "token_states_off",
    "block_ends_off",
    "slots_short",
    "mamba_blocks_overwritten",
    "prefix_hit_uncached",
    "cached_states_off",
    "blocks_copied_short",
    "repeats_missed",
    "requests_stalled",
    "requests_starved",
    "unwritten_blocks_cached",
    "blocks_leaked",
    "request_states_leaked",
    "max_seq_len_excess_target",
    "max_seq_len_excess_draft",
)
"""Counters of the contract probe that must stay 0; each is the metric ``contract.<name>``. A probe
has those that mean something on the engine's model runner."""

PREFIX_TOKENS: Final = ("asked", "hit", "attention", "mamba")
"""Counters ``prefix_tokens_<name>`` of the same probe, each the metric ``prefix_tokens.<name>``, of
an engine whose prefix cache was queried."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What one trial gave, by the names that ``Trial`` has for it.

    Attributes:
        unsupported: Metrics that the probes could not watch in this engine, with the reason.
        completions: Answers of a contract trial, to be compared with those of another engine.
    """

    samples: tuple[Sample, ...]
    answers: tuple[Answer, ...] = ()
    client_result: Mapping[str, Any] | None = None
    host_work: HostWork | None = None
    unsupported: Mapping[str, str] = field(default_factory=dict)
    completions: tuple[Completion, ...] = ()
    curve: Curve | None = None


def measure(phase: Phase, trial: TrialContext) -> TrialResult:
    """Make one trial."""
    if phase is Phase.PERFORMANCE:
        time_first_request(trial)
    trial.engine.is_fresh = False
    match phase:
        case Phase.CONTRACT:
            return _contract(trial)
        case Phase.ACCURACY:
            return _accuracy(trial)
        case Phase.PERFORMANCE:
            return _performance(trial)
        case Phase.HOST_SYNC:
            return _host_sync(trial)
        case Phase.DUET:
            return _duet(trial)


def _probed(trial: TrialContext, probe: str) -> dict[str, Any]:
    run_prelude(trial)
    with _watching(trial, probe) as seen:
        run_load(trial, trial.scenario.workload.generation)
    return seen


@contextmanager
def _watching(trial: TrialContext, probe: str) -> Iterator[dict[str, Any]]:
    """Keep a probe on; what it saw is there when the block has ended."""
    control = trial.engine.control
    seen: dict[str, Any] = {}
    control.start_probe(probe)
    try:
        yield seen
    finally:
        seen.update(control.stop_probe(probe))


def _contract(trial: TrialContext) -> TrialResult:
    workload = trial.scenario.workload
    waves = expand(workload.waves, workload.seed + trial.number)
    right = _without_graphs_and_drafts(trial, waves)
    # The prelude is watched too: what finished in it may be written to before the first wave.
    with _watching(trial, "contract") as counts:
        run_prelude(trial)
        replies = drive_replies(trial.engine, with_streams(waves, trial.number))
    answered = tuple(one.completion for one in replies)
    unwatched = counts.get(UNSUPPORTED, {})
    if trial.engine.server.launch.graph_replay:
        needed = trial.scenario.expect.replayed_layers.items()
        require_replayed_layers(counts, unwatched, needed, trial.scenario.engine.stages)
    require_decoding_rows(counts, unwatched, trial.scenario.expect.decoding_rows or 0)
    require_occasion(trial.scenario.fix, counts, unwatched)
    values = {f"contract.{name}": counts[name] for name in CONTRACTS if name in counts}
    values |= prefix_tokens_in(counts)
    if (breaks := count_grammar_breaks(trial.engine.control, waves, answered)) is not None:
        values[GRAMMAR_BREAKS] = breaks
    if right is not None:
        bound = near_tie_within({trial.scenario.engine.dtype})
        pairs = zip(answered, right, strict=True)
        answered = tuple(
            replace(one, is_wrong=is_another(one, other.completion, bound)) for one, other in pairs
        )
        values[WRONG_TOKENS] = sum(bool(one.is_wrong) for one in answered)
        if (otherwise := count_wrong_streams(replies, right)) is not None:
            values[WRONG_STREAMS] = otherwise
    unsupported = {f"contract.{name}": unwatched[name] for name in CONTRACTS if name in unwatched}
    if not values:
        raise MeasurementError(f"no contract can be watched: {find_first_reason(unwatched)}")
    samples = tuple(Sample(name, (float(value),)) for name, value in values.items())
    # What made-up weights say is as good one way as another, also next to another engine.
    if trial.engine.server.launch.engine.load_format == "dummy":
        return TrialResult(samples, unsupported=unsupported)
    repeated = unrepeated(waves, answered, trial.scenario.engine.dtype)
    if repeated is not None:
        samples = (*samples, Sample(UNREPEATED_TOKENS, (float(repeated),)))
    found = checked(home(), trial.scenario, trial.number, waves, answered)
    return TrialResult(
        (*samples, *found.samples),
        unsupported=unsupported | found.unsupported,
        completions=found.answered,
    )


def prefix_tokens_in(counts: Mapping[str, Any]) -> dict[str, int]:
    """What the prompts requested of the prefix cache and got; nothing where none did."""
    if not counts.get("prefix_tokens_asked"):
        return {}
    named = ((name, f"prefix_tokens_{name}") for name in PREFIX_TOKENS)
    return {
        f"prefix_tokens.{name}": counts[counter] for name, counter in named if counter in counts
    }


def _without_graphs_and_drafts(
    trial: TrialContext, waves: Sequence[PlannedWave]
) -> list[Reply] | None:
    """What the same engine says with the fix in, no graph replayed, and no drafts.

    ``None`` when the engine has nothing that it can set aside while it runs, and when its weights
    are made up: what those say is as good one way as another.
    """
    engine = trial.engine
    launch = engine.server.launch
    sets_aside = launch.can_set_graphs_aside or launch.can_withhold_drafts
    if not sets_aside or launch.engine.load_format == "dummy":
        return None
    own = engine.setting
    engine.settle(trial.pool.reference(trial.side))
    answered = drive_replies(trial.engine, waves)
    engine.settle(own)
    return answered


def _accuracy(trial: TrialContext) -> TrialResult:
    accuracy, server = trial.scenario.accuracy, trial.engine.server
    assert accuracy is not None  # noqa: S101 - plan.phases_of leaves the phase out without tasks
    run_prelude(trial)
    answers = trial.pool.lm_eval.run_tasks(
        accuracy,
        f"{server.url}/v1/completions",
        server.launch.served_name,
        HUB_TASKS_TIMEOUT_S if trial.scenario.on_hub else TASKS_TIMEOUT_S,
        trial.work,
    )
    samples = tuple(
        Sample(
            f"accuracy.{task}",
            tuple(float(answer.correct) for answer in answers if answer.task == task),
        )
        for task in accuracy.tasks
    )
    return TrialResult(samples, answers=answers)


def _performance(trial: TrialContext) -> TrialResult:
    held = begin_memory(trial)
    run_prelude(trial)
    if trial.scenario.sweep is not None:
        samples, curve = sweep(trial, trial.scenario.sweep)
        return TrialResult((*samples, *samples_of_start(trial)), curve=curve)
    loaded = work_of_load(trial, trial.scenario.workload.generation)
    samples = samples_of_client(loaded.result)
    if loaded.made is not None:
        samples += samples_of_steps(loaded.result, loaded.made, loaded.worked_s)
    samples += samples_of_memory(held, trial)
    capacity, unsupported = read_capacity(trial)
    searched, tried = search_objective(trial, loaded.result)
    return TrialResult(
        (*samples, *capacity, *searched, *samples_of_start(trial)),
        client_result={**loaded.result, **tried},
        unsupported=unsupported,
    )


def _duet(trial: TrialContext) -> TrialResult:
    """Load both sides at once; of what an engine then took, its own work alone says something.

    Neighbours, clocks and caches change from second to second, and change both sides alike (Bulej
    et al., "Duet Benchmarking: Improving Measurement Accuracy in the Cloud", ICPE 2020).
    """
    run_prelude(trial)
    if trial.scenario.sweep is not None:
        samples, curve = sweep(trial, trial.scenario.sweep, "processor")
        return TrialResult(samples, curve=curve)
    trial.wait_for_other()
    loaded = work_of_load(trial, trial.scenario.workload.generation)
    if loaded.made is None:
        raise MeasurementError("the engine does not count its steps, so its work is of none")
    work = round(loaded.worked_s / loaded.made.steps, CLOCK_DIGITS)
    return TrialResult((Sample(DUET_CPU_TIME, (work,)),))


def _host_sync(trial: TrialContext) -> TrialResult:
    """Two passes, since counting the reads slows the very code that the other pass times."""
    seen = _probed(trial, "host-sync")
    trial.engine.settle(trial.engine.setting)
    timed = _probed(trial, "metadata-time")
    reads, seconds = seen["reads_per_step"], timed["seconds"]
    if not reads or not seconds:
        raise MeasurementError("the probes saw no engine step")
    return TrialResult(
        (
            Sample("host_syncs_per_step", tuple(float(count) for count in reads)),
            *samples_of_waits(seen),
            Sample("metadata_build_time", tuple(round(value, CLOCK_DIGITS) for value in seconds)),
        ),
        host_work=compute_host_work(seen, timed["phases"]),
    )


def samples_of_waits(seen: Mapping[str, Any]) -> tuple[Sample, ...]:
    """How long the steps waited for the device, as the host-sync probe sees on CUDA only."""
    if "wait_seconds_per_step" not in seen:
        return ()
    waits, steps = seen["wait_seconds_per_step"], seen["step_seconds"]
    shares = (wait / step for wait, step in zip(waits, steps, strict=True) if step)
    return (
        Sample("host_sync_time", tuple(round(wait, CLOCK_DIGITS) for wait in waits)),
        Sample("host_sync_share", tuple(shares)),
    )


def compute_host_work(seen: Mapping[str, Any], phases: Mapping[str, Sequence[float]]) -> HostWork:
    """Say where reads and time of steps lie; ``phases`` have seconds, all 0 if no step had one."""
    most = sorted(seen["sites"].items(), key=lambda site: (-site[1], site[0]))[:SITES_KEPT]
    times, kinds = seen["site_seconds"], seen.get("site_kinds", {})
    return HostWork(
        sites=tuple(
            CallSite(place, reads, round(times[place], CLOCK_DIGITS), _find_most(kinds.get(place)))
            for place, reads in most
        ),
        phases=tuple(
            StepPhase(name, round(median(seconds), CLOCK_DIGITS))
            for name, seconds in phases.items()
            if any(seconds)
        ),
    )


def _find_most(kinds: Mapping[str, int] | None) -> str | None:
    return max(sorted(kinds), key=lambda kind: kinds[kind]) if kinds else None
