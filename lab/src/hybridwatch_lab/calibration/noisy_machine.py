"""Rules for a noisy machine, held against recorded sessions of a real engine.

The sessions were measured next to noisy neighbours (``hybridwatch_lab.calibration.recording``). The
shipped rule was written when two of them had been looked at, and no constant in it was tuned on
any. They are shown in two halves, by their names alone: how far a figure hangs on the few sessions
that there are.
"""

import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.random import Generator

from hybridwatch.analysis import signed_rank
from hybridwatch.analysis.judge import FALSE_DISCOVERY_RATE, judge_together
from hybridwatch.analysis.machine_state import BLOCKS
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Comparison, Verdict
from hybridwatch_lab.calibration import figure
from hybridwatch_lab.calibration.figure import at_least, at_level, part, percent
from hybridwatch_lab.calibration.laboratory import Laboratory, LabSection, LabTable
from hybridwatch_lab.calibration.sessions import (
    SAME,
    RecordedTrial,
    as_run,
    joined,
    read_sessions,
)
from hybridwatch_lab.calibration.simulated import Array

SESSIONS: Final = Path(__file__).parent / "histories" / "restless-sessions.csv"
SLOWER: Final = "busy-step-10"
"""The planted fault: a tenth more work in each step."""
_CALM: Final = 0.1
"""Logarithm by which the kernel may differ between the two trials of a calm block."""
_FEWEST: Final = 4
_USUAL: Final = 10
"""Blocks that the scenarios count."""
_BLOCKS: Final = (7, _USUAL, BLOCKS)
_REPORTS: Final = 1000
_KEYS: Final = MappingProxyType({"one half": "chosen on", "other half": "tested on"})


@dataclass(frozen=True, slots=True)
class JudgedSession:
    """A session of two sides, compared but not yet judged together.

    Attributes:
        drafts: Each metric and statistic.
        kernel: Logarithm of contender / baseline of the calibration kernel, by block.
        others: Difference of what others used of the processors, by block.
    """

    drafts: tuple[Comparison, ...]
    kernel: Array
    others: Array


Rule = Callable[[JudgedSession], tuple[Comparison, ...]]


def as_shipped(session: JudgedSession) -> tuple[Comparison, ...]:
    """Let the processor time decide (``analysis/machine_state.py``)."""
    return judge_together(session.drafts)[0]


def as_if_quiet(session: JudgedSession) -> tuple[Comparison, ...]:
    """Judge as on a machine that is not noisy."""
    return judge_together(_quiet(session.drafts))[0]


def both_ways(session: JudgedSession) -> tuple[Comparison, ...]:
    """Judge as on a quiet machine, with the level of both directions together."""
    return judge_together(_quiet(session.drafts), FALSE_DISCOVERY_RATE / 2)[0]


def calm_blocks(session: JudgedSession) -> tuple[Comparison, ...]:
    """Keep the blocks in whose two trials the kernel took as long."""
    calm = np.abs(session.kernel) < _CALM
    if calm.sum() < _FEWEST:
        return session.drafts
    return _with_ratios(session, lambda ratios: ratios[calm])


def others_taken_out(session: JudgedSession) -> tuple[Comparison, ...]:
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


def _with_ratios(
    session: JudgedSession, change: Callable[[Array], Array]
) -> tuple[Comparison, ...]:
    made = [_redone(one, change(np.asarray(one.ratios))) for one in _quiet(session.drafts)]
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


def of_recorded_sessions(lab: Laboratory, file: Path = SESSIONS) -> LabSection:
    """Hold every rule against sessions whose truth is known."""
    every = read_sessions(file)
    halves = [
        [trials for name, trials in every.items() if zlib.crc32(name.encode()) % 2 == half]
        for half in range(2)
    ]
    as_recorded, as_drawn = [], []
    figures: tuple[figure.Figure, ...] = ()
    for where, sessions in (("one half", halves[0]), ("other half", halves[1])):
        same, slower = compared(sessions, SAME), compared(sessions, SLOWER)
        as_recorded += [(name, where, *_cells(rule, same, slower)) for name, rule in RULES.items()]
        for blocks in _BLOCKS:
            lab.on_progress(f"sessions of a noisy machine: {where}, {blocks} blocks drawn")
            rng, reports = lab.rng(f"restless {_KEYS[where]} {blocks}"), lab.times(_REPORTS, 20)
            drawn = [
                [_drawn(rng, _pool(some), blocks, swap=swap) for _ in range(reports if some else 0)]
                for some, swap in ((same, True), (slower, False))
            ]
            rows = [
                (name, where, f"{blocks}", *_cells(rule, *drawn)) for name, rule in RULES.items()
            ]
            as_drawn += rows
            if where == "other half" and blocks in {_USUAL, BLOCKS}:
                figures += _figures_of_drawn(blocks, *drawn)
        if where == "other half":
            figures = (_called_restless(same), *figures)
    long = joined(every, BLOCKS)
    same, slower = compared(long, SAME), compared(long, SLOWER)
    as_joined = tuple((name, *_cells(rule, same, slower)) for name, rule in RULES.items())
    text = (
        f"{len(every)} sessions of seven blocks on a real engine, recorded beside noisy neighbours "
        "(`histories/README.md` says how): the engine beside itself, and beside itself with a "
        "planted tenth more work in each step. The shipped rule was written when two of them had "
        "been looked at, and rules were compared on blocks of both halves before the last were "
        "recorded; no constant was tuned on any. Two halves show how far a figure hangs on these "
        "few sessions. Sessions of other lengths were drawn from the blocks of a half, with "
        "replacement; where nothing was changed, which of the two trials of a block is the "
        f"contender was drawn too. Scenarios count {_USUAL} blocks; a run "
        f"whose machine is noisy goes on to {BLOCKS}. A report counts once, whichever of its "
        "times and rates is red, better or the same. The figures of drawn sessions are of the "
        f"other half; that {BLOCKS} blocks are enough was seen on them, not foretold."
    )
    header = ("unchanged: red", "better", "the same", "+10 % work: red", "by")
    tables = (
        LabTable("Recorded sessions", ("rule", "sessions", *header), tuple(as_recorded)),
        LabTable(
            f"Recorded sessions that followed each other, joined to {len(long)} of {BLOCKS} blocks",
            ("rule", *header),
            as_joined,
        ),
        LabTable("Drawn sessions", ("rule", "sessions", "blocks", *header), tuple(as_drawn)),
    )
    return LabSection("Sessions of a noisy machine", text, figures, tables)


def _called_restless(recorded: Sequence[JudgedSession]) -> figure.Figure:
    return figure.share(
        "restless.called_restless",
        "recorded sessions that call their machine noisy",
        [any(draft.restless for draft in one.drafts) for one in recorded],
    )


def _figures_of_drawn(
    blocks: int, same: Sequence[JudgedSession], slower: Sequence[JudgedSession]
) -> tuple[figure.Figure, ...]:
    changed = {Verdict.REGRESSION, Verdict.IMPROVEMENT}
    suffix = "" if blocks == _USUAL else f"_in_{blocks}"
    return (
        figure.share(
            f"restless.changed{suffix}",
            f"unchanged on a noisy machine, {blocks} blocks drawn: any red or better",
            [any(c.verdict in changed for c in as_shipped(one)) for one in same],
            at_level(0.05),
        ),
        figure.share(
            f"restless.found{suffix}",
            f"+10 % work on a noisy machine, {blocks} blocks drawn: any red",
            [_has(as_shipped(one), Verdict.REGRESSION) for one in slower],
            at_least(0.70) if blocks == BLOCKS else None,
        ),
    )


def _pool(sessions: Sequence[JudgedSession]) -> JudgedSession:
    """Put the blocks of all sessions into one."""
    drafts = tuple(
        replace(some[0], restless=True, ratios=tuple(r for one in some for r in one.ratios))
        for some in zip(*(session.drafts for session in sessions), strict=True)
    )
    kernel, others = (
        np.concatenate([getattr(session, name) for session in sessions])
        for name in ("kernel", "others")
    )
    return JudgedSession(drafts, kernel, others)


def _drawn(rng: Generator, pool: JudgedSession, blocks: int, *, swap: bool) -> JudgedSession:
    """Draw a session from a pool of blocks, whose trials may change places."""
    picked = rng.integers(0, len(pool.kernel), blocks)
    signs = rng.choice((-1.0, 1.0), blocks) if swap else np.ones(blocks)
    drafts = tuple(_redone(one, np.asarray(one.ratios)[picked] * signs) for one in pool.drafts)
    return JudgedSession(drafts, pool.kernel[picked] * signs, pool.others[picked] * signs)


def _redone(draft: Comparison, ratios: Array) -> Comparison:
    some = tuple(ratios.tolist())
    return replace(
        draft,
        ratios=some,
        effect=signed_rank.typical_change(some),
        equivalence_p=signed_rank.equivalence_p(some, draft.metric.margin),
    )


def compared(sessions: Sequence[Sequence[RecordedTrial]], contender: str) -> list[JudgedSession]:
    """Compare the baseline of each session with one other side of it."""
    found = []
    for trials in sessions:
        if contender not in {trial.side for trial in trials}:
            continue
        run = as_run(trials, contender)
        around = [
            [one.surroundings for one in run.trials if one.side == side and one.surroundings]
            for side in range(2)
        ]
        kernel = np.log([[one.kernel_median_s for one in side] for side in around])
        others = np.asarray([[one.others or 0.0 for one in side] for side in around])
        drafts = tuple(one for one in build_report(run).comparisons if one.ratios)
        found.append(JudgedSession(drafts, kernel[1] - kernel[0], others[1] - others[0]))
    return found


def _has(found: Sequence[Comparison], verdict: Verdict) -> bool:
    return any(one.verdict is verdict for one in found)


def _cells(
    rule: Rule, same: Sequence[JudgedSession], slower: Sequence[JudgedSession]
) -> tuple[str, ...]:
    unchanged, worked = [rule(one) for one in same], [rule(one) for one in slower]
    verdicts = Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.EQUIVALENT
    counts = Counter(
        name
        for found in worked
        for name in {one.metric.id for one in found if one.verdict is Verdict.REGRESSION}
    )
    by = (
        ", ".join(
            f"{name} {percent(round(count / len(worked), 3))}"
            for name, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:3]
        )
        or "-"
    )
    return (
        *(part([_has(found, verdict) for found in unchanged]) for verdict in verdicts),
        part([_has(found, Verdict.REGRESSION) for found in worked]),
        by,
    )
