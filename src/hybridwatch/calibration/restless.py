"""Rules for a restless machine, held against recorded sessions of a real engine.

The sessions were measured beside noisy neighbours (``hybridwatch.restless``). A rule was chosen on
one half of them and is tested on the other; which session is in which half hangs on its name alone.
"""

import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np

from hybridwatch.analysis import signed_rank
from hybridwatch.analysis.judge import judge_together
from hybridwatch.analysis.multiplicity import FALSE_DISCOVERY_RATE
from hybridwatch.analysis.report import report_of
from hybridwatch.analysis.verdict import Comparison, Verdict
from hybridwatch.calibration import figure
from hybridwatch.calibration.figure import at_least, at_most, part
from hybridwatch.calibration.laboratory import Laboratory, Section, Table
from hybridwatch.calibration.noise import Array
from hybridwatch.calibration.sessions import (
    SAME,
    RecordedTrial,
    as_run,
    read_sessions,
)

SESSIONS: Final = Path(__file__).parent / "histories" / "restless-sessions.csv"
SLOWER: Final = "busy-step-10"
"""The planted fault: a tenth more work in each step."""
_CALM: Final = 0.1
"""Logarithm by which the kernel may differ between the two trials of a calm block."""
_FEWEST: Final = 4


@dataclass(frozen=True, slots=True)
class Judged:
    """A session of two sides, compared but not yet judged together.

    Attributes:
        drafts: Each metric and statistic.
        kernel: Logarithm of contender / baseline of the calibration kernel, by block.
        others: Difference of what others used of the processors, by block.
    """

    drafts: tuple[Comparison, ...]
    kernel: Array
    others: Array


Rule = Callable[[Judged], tuple[Comparison, ...]]


def as_shipped(session: Judged) -> tuple[Comparison, ...]:
    """Let the processor time decide (``analysis/restless.py``)."""
    return judge_together(session.drafts)[0]


def as_if_quiet(session: Judged) -> tuple[Comparison, ...]:
    """Judge as on a machine that is not restless."""
    return judge_together(_quiet(session.drafts))[0]


def both_ways(session: Judged) -> tuple[Comparison, ...]:
    """Judge as on a quiet machine, with the level of both directions together."""
    return judge_together(_quiet(session.drafts), FALSE_DISCOVERY_RATE / 2)[0]


def calm_blocks(session: Judged) -> tuple[Comparison, ...]:
    """Keep the blocks in whose two trials the kernel took as long."""
    calm = np.abs(session.kernel) < _CALM
    if calm.sum() < _FEWEST:
        return session.drafts
    return _with_ratios(session, lambda ratios: ratios[calm])


def others_taken_out(session: Judged) -> tuple[Comparison, ...]:
    """Take out of each ratio what others used more, by a line through nothing.

    Where the trials of a block change places, both differences change their signs, so the slope
    stays and the flips stay exact.
    """
    power = float(session.others @ session.others)

    def without(ratios: Array) -> Array:
        slope = float(ratios @ session.others) / power if power else 0.0
        return np.asarray(ratios - slope * session.others)

    return _with_ratios(session, without)


def _quiet(drafts: Sequence[Comparison]) -> list[Comparison]:
    return [replace(one, restless=False) for one in drafts]


def _with_ratios(session: Judged, change: Callable[[Array], Array]) -> tuple[Comparison, ...]:
    made = []
    for one in _quiet(session.drafts):
        ratios = tuple(change(np.asarray(one.ratios)).tolist())
        made.append(
            replace(
                one,
                ratios=ratios,
                effect=signed_rank.typical_change(ratios),
                equivalence_p=signed_rank.equivalence_p(ratios, one.metric.margin),
            )
        )
    return judge_together(made, FALSE_DISCOVERY_RATE / 2)[0]


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "as on a quiet machine": as_if_quiet,
        "the level of both directions": both_ways,
        "calm blocks alone, both directions": calm_blocks,
        "what others used taken out, both directions": others_taken_out,
        "processor time first (shipped)": as_shipped,
    }
)


def of_recorded_sessions(lab: Laboratory, file: Path = SESSIONS) -> Section:
    """Hold every rule against sessions whose truth is known."""
    lab.tell("recorded sessions of a restless machine")
    every = read_sessions(file)
    halves = [
        [trials for name, trials in every.items() if zlib.crc32(name.encode()) % 2 == half]
        for half in range(2)
    ]
    rows = []
    for where, sessions in (("chosen on", halves[0]), ("tested on", halves[1])):
        same, slower = compared(sessions, SAME), compared(sessions, SLOWER)
        rows += [(name, where, *_cells(rule, same, slower)) for name, rule in RULES.items()]
    twice = [one + two for half in halves for one, two in zip(half[::2], half[1::2], strict=False)]
    longer = compared(twice, SAME), compared(twice, SLOWER)
    rows.append(("processor time first", "both halves, 14 blocks", *_cells(as_shipped, *longer)))
    same, slower = compared(halves[1], SAME), compared(halves[1], SLOWER)
    figures = _figures(same, slower)
    text = (
        f"{len(every)} sessions of seven blocks on a real engine, recorded beside noisy neighbours "
        "(`histories/README.md` says how): the engine beside itself, and beside "
        "itself with a tenth more work in each step (`busy-step-10`). A rule was chosen on one "
        "half and tested on the other. A report counts once, whichever of its times and rates is "
        "red, better or the same."
    )
    header = (
        "rule",
        "sessions",
        "unchanged: red",
        "better",
        "the same",
        "+10 % work: red",
        "by",
    )
    return Section(
        "Sessions of a restless machine",
        text,
        figures,
        (Table("What each rule says of recorded sessions", header, tuple(rows)),),
    )


def _figures(same: Sequence[Judged], slower: Sequence[Judged]) -> tuple[figure.Figure, ...]:
    unchanged, worked = [as_shipped(one) for one in same], [as_shipped(one) for one in slower]
    changed = {Verdict.REGRESSION, Verdict.IMPROVEMENT}
    return (
        figure.share(
            "restless.called_restless",
            "sessions that call their machine restless",
            [any(draft.restless for draft in one.drafts) for one in same],
        ),
        figure.share(
            "restless.changed",
            "restless sessions of an unchanged engine with any red or better",
            [any(c.verdict in changed for c in found) for found in unchanged],
            at_most(0.05),
        ),
        figure.share(
            "restless.found",
            "restless sessions with +10 % work, red by processor time",
            [_has(found, Verdict.REGRESSION) for found in worked],
            at_least(0.7),
        ),
    )


def compared(sessions: Sequence[Sequence[RecordedTrial]], contender: str) -> list[Judged]:
    """Compare the baseline of each session with one other side of it."""
    found = []
    for trials in sessions:
        run = as_run(trials, contender)
        around = [
            [one.surroundings for one in run.trials if one.side == side and one.surroundings]
            for side in range(2)
        ]
        kernel = np.log([[one.kernel_median_s for one in side] for side in around])
        others = np.asarray([[one.others or 0.0 for one in side] for side in around])
        drafts = report_of(run).comparisons
        if contender in {trial.side for trial in trials}:
            found.append(Judged(drafts, kernel[1] - kernel[0], others[1] - others[0]))
    return found


def _has(found: Sequence[Comparison], verdict: Verdict) -> bool:
    return any(one.verdict is verdict for one in found)


def _cells(rule: Rule, same: Sequence[Judged], slower: Sequence[Judged]) -> tuple[str, ...]:
    unchanged, worked = [rule(one) for one in same], [rule(one) for one in slower]
    verdicts = Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.EQUIVALENT
    counts = Counter(
        name
        for found in worked
        for name in {one.metric.id for one in found if one.verdict is Verdict.REGRESSION}
    )
    by = ", ".join(f"{name} {count}" for name, count in counts.most_common(3)) or "-"
    return (
        *(part([_has(found, verdict) for found in unchanged]) for verdict in verdicts),
        f"{sum(_has(found, Verdict.REGRESSION) for found in worked)} of {len(worked)}",
        by,
    )
