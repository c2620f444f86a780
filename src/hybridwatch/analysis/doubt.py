"""Doubts about a comparison, each with what to do about it.

An analysis never prints a doubt: doubts travel with the comparison and every view shows them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from itertools import chain
from statistics import median

from hybridwatch.analysis.machine_state import doubt_machine_states
from hybridwatch.analysis.pair import Blocks, Pair
from hybridwatch.analysis.paired_proportion import Answers, Pairs
from hybridwatch.analysis.power import ENOUGH
from hybridwatch.analysis.rank import SETTLING_TRIALS
from hybridwatch.analysis.run_noise import FEWEST_RUNS, REACH, least_noise
from hybridwatch.analysis.signed_rank import SETTLING_BLOCKS
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import Comparison
from hybridwatch.metrics import SEND_LATENESS, Kind
from hybridwatch.records.run import UNKNOWN

_NAMED = 3
"""How many unknown fields a doubt lists."""

LATE_S = 0.005
"""Seconds by which half of the requests of a trace may be sent too late."""

FEWEST_LOSSES = 5
"""Answers lost while none is won: of equal sides one in 32 shows so many at most."""

UNKNOWN_RUNS = (
    "The trials differ, but two runs of one engine may differ as much, and too few earlier runs "
    f"are stored to know ({FEWEST_RUNS} of a build tell): measure interleaved, both builds in one "
    "run."
)

HELD_BACK = (
    "Held back: on a restless machine a time or a rate is a change only if the engine's processor "
    "time changed the same way within six blocks or more; repeat on a quiet machine."
)

OF_LUCK = (
    "No more than chance gives from run to run, such as the luck of a start: it counts once so "
    "many runs in a row say it that chance does not explain them."
)

STARTS_DIFFER = (
    "Both times said so, but starts of one engine differ as much: each start of the engines counts "
    "once in the test of all; repeat with more of them (--starts)."
)

NO_ANSWERS = (
    "The answers of a side are not at hand, and unpaired shares prove nothing: "
    "compare the whole records, with the file of answers beside each."
)


def added(draft: Comparison, *doubts: str) -> Comparison:
    """Give a comparison more doubts."""
    return replace(draft, doubts=(*draft.doubts, *doubts))


def obstacles(
    baseline: OneSide, contender: OneSide, *, across_testbeds: bool = False
) -> tuple[str, ...]:
    """Say why two sides cannot be compared at all; empty if they can."""
    left, right = baseline.run, contender.run
    if UNKNOWN == left.testbed.id == right.testbed.id and left.id != right.id:
        machines: tuple[str, ...] = (
            "Testbed unknown on both sides: ingest with --testbed to say where they were measured.",
        )
    else:
        remedy = "measure both on one machine"
        machines = _differing(("Testbed", left.testbed.id, right.testbed.id, remedy))
    again = "measure the baseline again with the present file"
    named = "its file names no model: ingest with --scenario to say what was measured"
    known = again if not (left.has_own_load or right.has_own_load) else named
    pairs = (
        ("Scenario", left.scenario.id, right.scenario.id, "compare runs of one scenario"),
        ("Scenario version", left.scenario.version, right.scenario.version, again),
        ("Scenario digest", left.scenario.digest[:12], right.scenario.digest[:12], known),
    )
    return (*_differing(*pairs), *(() if across_testbeds else machines))


def _differing(*pairs: tuple[str, object, object, str]) -> tuple[str, ...]:
    return tuple(
        f"{what} differs ({old} -> {new}): {remedy}."
        for what, old, new, remedy in pairs
        if old != new
    )


def about_pair(pair: Pair, draft: Comparison) -> Iterator[str]:
    """Yield doubts of two sides but of their values; ``draft`` knows the noise between runs."""
    yield from _about_setting(pair)
    yield from _about_noise(draft)
    if not pair.repeats:
        yield from doubt_machine_states(pair)
    yield from _about_lateness(pair)
    if broken := sum(side.broken for side in pair.sides):
        yield (
            f"{broken} trial(s) left out because of values that are no finite numbers: "
            "look at their raw samples."
        )
    yield from _about_unsupported(pair)
    if all(side.summary is not None for side in pair.sides):
        yield from about_failures(pair)
        if pair.subject.metric.kind.has_noise and not pair.repeats:
            yield from _about_few(pair)
            if not pair.subject.metric.is_of_start:  # one block of each start has a value
                yield from _about_blocks(pair.blocks)


def _about_setting(pair: Pair) -> Iterator[str]:
    left, right = (side.side.run for side in pair.sides)
    if left.harness != right.harness:
        yield (
            f"Measured by different harnesses ({left.harness.version} at {left.harness.revision} "
            f"-> {right.harness.version} at {right.harness.revision}): repeat both with one."
        )
    # No drift reaches values that never vary within a side.
    noisy = pair.subject.metric.kind.has_noise and not pair.repeats
    if noisy and (left.id != right.id or pair.blocks is None):
        how = "interleaved" if left.id != right.id else "in turn"
        yield (
            f"The sides were not measured {how}, so drift of the machine counts as change: "
            "confirm by one run with both builds."
        )
    changed = [
        field.name
        for field in fields(left.testbed)
        if getattr(left.testbed, field.name) != getattr(right.testbed, field.name)
    ]
    if changed:
        yield f"The testbed changed ({', '.join(changed)}): measure the baseline again here."
    for name, run in (("baseline", left), ("contender", right)):
        if run.source is not None:
            yield (
                f"The {name} was ingested from {run.source.format}, whose file does not tell "
                f"{len(run.source.unknown)} facts ({', '.join(run.source.unknown[:_NAMED])}, ...): "
                "see that both sides were measured alike."
            )
            if reason := run.source.left_out.get(pair.subject.metric.id):
                yield f"Left out when the {name} was ingested: {reason}."


def about_failures(pair: Pair) -> Iterator[str]:
    """Doubts that come from trials that gave no measurement."""
    phase = pair.subject.phase
    for side in pair.sides:
        name, failed, good = side.name, side.failures, len(side.trials)
        if failed and good:
            yield (
                f"{failed} of {failed + good} {phase.value} trials of the {name} failed and the "
                "others may be the lucky ones: read the failures, then repeat."
            )
        elif failed:
            yield (
                f"No {phase.value} trial of the {name} succeeded ({failed} failed): "
                "read the failures, then repeat."
            )


def _about_lateness(pair: Pair) -> Iterator[str]:
    for side in pair.sides:
        samples = [sample for trial in side.trials for sample in trial.samples]
        late = [sample.values for sample in samples if sample.metric == SEND_LATENESS]
        if late and (middle := median(chain.from_iterable(late))) > LATE_S:
            yield (
                f"Half of the {side.name}'s requests were sent more than {1000 * middle:.0f} ms "
                "later than the trace says, so the load was another: free a processor for the "
                "load client, or lower workload.trace.speed."
            )


def _about_unsupported(pair: Pair) -> Iterator[str]:
    metric = pair.subject.metric.id
    for side in pair.sides:
        name, trials = side.name, side.trials
        reasons = [trial.unsupported[metric] for trial in trials if metric in trial.unsupported]
        if reasons:
            yield (
                f"The probe does not support the engine of the {name} ({len(reasons)} of "
                f"{len(trials)} trials): {reasons[0]}."
            )


def _about_few(pair: Pair) -> Iterator[str]:
    fewest = min(side.summary.n if side.summary else 0 for side in pair.sides)
    in_blocks = pair.blocks is not None and pair.blocks.n >= SETTLING_BLOCKS
    what = "start" if pair.subject.metric.is_of_start else "trial"
    repeat = f"repeat with --{what}s {ENOUGH}."
    if pair.has_single_values_of_asv:
        yield _about_single_values(pair)
    elif fewest < SETTLING_TRIALS:
        yield (
            f"Fewer than {SETTLING_TRIALS} {what}s a side: no difference can ever be significant; "
            f"{repeat}"
        )
    elif fewest < ENOUGH:
        yield (
            f"Fewer than {ENOUGH} {what}s a side: only large changes can be found"
            f"{'' if in_blocks else ', and drift of the machine hides even these'}; {repeat}"
        )


def _about_single_values(pair: Pair) -> str:
    if pair.intervals is not None:
        return (
            "asv kept no samples, so the 99 % intervals of the medians are compared: "
            "asv run --record-samples keeps what a test of ranks needs."
        )
    if pair.subject.metric.id.startswith("asv_time."):
        return (
            "asv kept one time a side, and no interval that says how times of a run differ: "
            "repeat with asv run --record-samples, and without --quick."
        )
    return (
        "asv asks such a benchmark once a run, so nothing says whether its number comes out again: "
        f"with {FEWEST_RUNS} earlier runs of a build in the results, a number that they repeat is "
        "exact, and any other one a change."
    )


def _about_blocks(blocks: Blocks | None) -> Iterator[str]:
    if blocks is not None and blocks.n < blocks.planned:
        yield (
            f"{blocks.planned - blocks.n} of {blocks.planned} blocks left out, because a side "
            "failed or gave no finite value in them: read the failures, then repeat."
        )


def _about_noise(draft: Comparison) -> Iterator[str]:
    if draft.noise is None or draft.relevance <= draft.metric.bound:
        return
    counts = f"only a change beyond {100 * draft.relevance:.1f} % ({REACH:g} times that) counts"
    if draft.noise == least_noise(draft.metric):
        yield (
            "No interval or sample of a run says how much the next run of asv differs: "
            f"{100 * draft.noise:.1f} % is assumed, so {counts}; look for smaller ones in a "
            "history of runs, with hybridwatch detect."
        )
        return
    yield (
        f"Runs of these builds scatter by {100 * draft.noise:.1f} % from one to the next, so "
        f"{counts}: confirm by one run with both builds."
    )


def about_constancy(name: str, values: Sequence[float]) -> Iterator[str]:
    """Doubts about a contract that some trials kept and others broke.

    How often it is broken follows the number of engine steps, which no two trials over HTTP share.
    """
    if values and min(values) == 0 < max(values):
        found = ", ".join(f"{value:g}" for value in sorted(set(values)))
        yield (
            f"The {name}'s trials disagree ({found}); the worst counts: look for what varies "
            "from trial to trial."
        )


def about_breach(expected: str, baseline: float | None, contender: float, *, both: bool) -> str:
    """Say that a side is wrong, and whether ``both`` are; ``expected`` is such as ``exactly 0``."""
    old = "no value" if baseline is None else f"{baseline:g}"
    where = "on both sides, so not new" if both else "on the contender"
    return (
        f"Broken {where}: {expected} is expected, the baseline has {old} and the contender "
        f"{contender:g}; equal or better is not right."
    )


def about_questions(baseline: Answers, contender: Answers) -> tuple[str, ...]:
    """Say why two sides' answers cannot be paired; empty if they can."""
    found: list[str] = []
    if baseline.versions != contender.versions:
        old, new = (", ".join(sorted(side.versions)) for side in (baseline, contender))
        found.append(f"Task version differs ({old} -> {new}): measure both with one version.")
    only_old = len(baseline.by_key.keys() - contender.by_key.keys())
    only_new = len(contender.by_key.keys() - baseline.by_key.keys())
    if only_old or only_new:
        found.append(
            f"The questions differ ({only_old} on the baseline only, {only_new} on the contender "
            "only): measure both with the same documents and prompts."
        )
    return tuple(found)


def about_second_look(first: Comparison, second: Comparison, *, tested: bool) -> str:
    """Say that a change was not there when it was measured again, or that nothing could tell."""
    if not tested:
        return (
            f"The first {_blocks(first)} said {_change(first)}, and measuring again gave too "
            "little to test: judged by the first alone; read the failures, then repeat."
        )
    return (
        f"The first {_blocks(first)} said {_change(first)}, the second {_blocks(second)}, on new "
        f"engines, did not ({_change(second)}): measured again by itself; repeat to be sure."
    )


def _blocks(look: Comparison) -> str:
    made = 0 if look.contender is None else look.contender.n
    return f"{look.pairs} blocks" if look.pairs else f"{made} trials"


def _change(look: Comparison) -> str:
    return "a change" if look.effect is None else f"{100 * look.effect:+.1f} %"


def about_losses(pairs: Pairs) -> Iterator[str]:
    """Report answers lost with none won, more than chance; an average of many hides them."""
    if pairs.lost >= FEWEST_LOSSES and not pairs.won:
        yield f"{pairs.lost} answers lost, none won: read the answers that flipped."


def about_margin(kind: Kind) -> str:
    """Say that a change is not shown to lie on either side of the margin."""
    return (
        "The change is beyond noise, but whether it is beyond the margin stays open: "
        f"repeat with more {kind.sample}s."
    )


def about_multiplicity(p_value: float, tests: int, kind: Kind) -> str:
    """Say that a difference did not survive the control of its family of tests."""
    return (
        f"Significant alone (p {p_value:.3f}), but not as one of {tests} tests: "
        f"repeat with more {kind.sample}s."
    )
