"""The history detector as it is used: run again after every new point.

A detector that is right on a finished series may still cry wolf every week, since every new point
is a new chance to be wrong. Only a series that grows shows that, and how late an alarm comes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.random import Generator

from hybridwatch_lab.calibration import figure, simulated
from hybridwatch_lab.calibration.figure import Bound, Figure, at_least, at_most, percent
from hybridwatch_lab.calibration.laboratory import Laboratory, LabSection, LabTable
from hybridwatch_lab.calibration.rivals import FIELD, Alarm, Detector, ours
from hybridwatch_lab.calibration.simulated import Array, RecordedNoise

BLOCK: Final = 100
PLACE: Final = 70
CHANGE: Final = 0.05
NEAR: Final = 5
"""An alarm this many points from the truth names it."""
_FIRST: Final = 10
_SAME: Final = 3
"""Alarms this close to each other are one alarm."""
_SPREADS: Final = (0.005, 0.01, 0.02, 0.05)
HEADER: Final = (
    "rule",
    "hit",
    "hit, confirmed",
    "luck",
    "false alarms /1000",
    "confirmed /1000",
    "delay",
    "delay, confirmed",
)
HOW: Final = (
    f"Each is shown point by point from the {_FIRST}th, as it is and with +{percent(CHANGE)} from "
    f"point {PLACE} on. A hit is an alarm after the step within {NEAR} points of it; luck is the "
    "same without the step. False alarms are those of the series without it, per 1000 points "
    f"shown; alarms within {_SAME} points of an earlier one are the same alarm. A delay of 0 is an "
    "alarm at the first changed point."
)


@dataclass(frozen=True, slots=True)
class Raised:
    """An alarm and when it was first seen."""

    seen: int
    alarm: Alarm


@dataclass(frozen=True, slots=True)
class OnlineOutcome:
    """What a detector said of one block, with a step and without.

    Attributes:
        delay: Points after the first changed one until any alarm named the step; ``None`` if
            none did.
        delay_confirmed: The same of confirmed alarms.
        luck: Whether an alarm named the place in the block without the step.
        false_alarms: Distinct alarms in the block without the step.
        false_confirmed: The same of confirmed alarms.
    """

    delay: int | None
    delay_confirmed: int | None
    luck: bool
    false_alarms: int
    false_confirmed: int


def follow(detector: Detector, values: Array) -> tuple[Raised, ...]:
    """Show a series to a detector point by point and note all it says, each time it says it."""
    return tuple(
        Raised(seen, alarm)
        for seen in range(_FIRST, len(values) + 1)
        for alarm in detector(values[:seen])
    )


def distinct(raised: Sequence[Raised], *, confirmed: bool) -> int:
    """Count alarms, those near one seen before left out."""
    places: list[int] = []
    for place in _places(raised, confirmed=confirmed):
        if all(abs(place - other) > _SAME for other in places):
            places.append(place)
    return len(places)


def first_naming(raised: Sequence[Raised], place: int, *, confirmed: bool) -> int | None:
    """Say how many points after the first changed one an alarm named it; ``None`` if none did."""
    return next(
        (
            one.seen - 1 - place
            for one in raised
            if one.seen > place
            and abs(one.alarm.index - place) <= NEAR
            and (one.alarm.confirmed or not confirmed)
        ),
        None,
    )


def examine_block(
    detector: Detector, quiet: Array, stepped: Array, place: int = PLACE
) -> OnlineOutcome:
    """Let a block grow, with its step and without."""
    loud, still = follow(detector, stepped), follow(detector, quiet)
    return OnlineOutcome(
        delay=first_naming(loud, place, confirmed=False),
        delay_confirmed=first_naming(loud, place, confirmed=True),
        luck=first_naming(still, place, confirmed=False) is not None,
        false_alarms=distinct(still, confirmed=False),
        false_confirmed=distinct(still, confirmed=True),
    )


def shuffled_blocks(histories: Mapping[str, Array], rng: Generator, count: int) -> list[Array]:
    """Draw stretches of real series and shuffle each, so that only its noise is left."""
    long = [values for values in histories.values() if len(values) >= BLOCK]
    blocks = []
    for _ in range(count):
        values = long[int(rng.integers(len(long)))]
        start = int(rng.integers(len(values) - BLOCK + 1))
        blocks.append(rng.permutation(values[start : start + BLOCK]))
    return blocks


def with_step(block: Array) -> Array:
    """Multiply a change into a block."""
    return block * simulated.step(len(block), PLACE, CHANGE)


def sum_up(
    name: str,
    where: str,
    outcomes: Sequence[OnlineOutcome],
    *,
    promised: bool = False,
    hit_bound: Bound | None = None,
) -> tuple[Figure, ...]:
    """Sum up a detector's outcomes; ``promised``: the project's bounds are printed next to them."""
    hit, calm, soon, later = (
        (at_least(0.9), at_most(1.0), at_most(2), at_most(5))
        if promised
        else (hit_bound, None, None, None)
    )
    return (
        *_hits(name, where, outcomes, hit),
        *_false_alarms(name, where, outcomes, calm),
        *_delays(name, where, outcomes, soon, later),
    )


def _hits(
    name: str, where: str, outcomes: Sequence[OnlineOutcome], bound: Bound | None
) -> Iterator[Figure]:
    hits = [one.delay is not None for one in outcomes]
    sure = [one.delay_confirmed is not None for one in outcomes]
    yield figure.share(f"{name}.hit", f"{where}: step named", hits, bound)
    yield figure.share(f"{name}.hit_confirmed", f"{where}: step named, confirmed", sure, bound)
    luck = [one.luck for one in outcomes]
    yield figure.share(f"{name}.luck", f"{where}: its place named without it", luck)


def _false_alarms(
    name: str, where: str, outcomes: Sequence[OnlineOutcome], bound: Bound | None
) -> Iterator[Figure]:
    looks = len(outcomes) * (BLOCK - _FIRST + 1)
    title = f"{where}: false alarms per 1000 points"
    count, sure = sum(o.false_alarms for o in outcomes), sum(o.false_confirmed for o in outcomes)
    yield figure.rate(f"{name}.false_alarms", title, count, looks, len(outcomes), bound)
    title += ", confirmed"
    yield figure.rate(f"{name}.false_confirmed", title, sure, looks, len(outcomes), bound)


def _delays(
    name: str,
    where: str,
    outcomes: Sequence[OnlineOutcome],
    soon: Bound | None,
    later: Bound | None,
) -> Iterator[Figure]:
    delays = [o.delay for o in outcomes if o.delay is not None]
    sure = [o.delay_confirmed for o in outcomes if o.delay_confirmed is not None]
    title = f"{where}: median delay of an alarm, points"
    yield figure.median(f"{name}.delay", title, delays, soon)
    title = f"{where}: median delay of a confirmed alarm, points"
    yield figure.median(f"{name}.delay_confirmed", title, sure, later)


def on_real_noise(
    lab: Laboratory, histories: Mapping[str, Array], detector: Detector = ours
) -> LabSection:
    """A step in shuffled blocks of real series: our rule with bounds, and rules of the field."""
    rng = lab.rng("real noise")
    blocks = shuffled_blocks(histories, rng, lab.times(400, 20))
    lab.on_progress(f"histories: {len(blocks)} blocks of real noise, point by point")
    outcomes = [examine_block(detector, block, with_step(block)) for block in blocks]
    figures = sum_up("history.real", "real noise", outcomes, promised=True)
    rows = [write_row("hybridwatch", figures)]
    few = blocks[: lab.times(50, 5)]
    for name, rival in FIELD.items():
        if rival is not ours:
            lab.on_progress(f"histories: the same, {name}")
            results = [examine_block(rival, block, with_step(block)) for block in few]
            rows.append(write_row(name, sum_up("rival", name, results, promised=False)))
    text = (
        f"{len(blocks)} stretches of {BLOCK} points of {len(histories)} real series "
        "(`lab/src/hybridwatch_lab/calibration/histories`, unless `--histories` names another file "
        f"`series,value`), shuffled so that nothing real is left in them. {HOW} "
        f"The other rules saw the first {len(few)} stretches."
    )
    table = LabTable(f"+{percent(CHANGE)} in real noise, point by point", HEADER, tuple(rows))
    return LabSection("Histories, real noise", text, figures, (table,))


def on_known_noise(lab: Laboratory, detector: Detector = ours) -> LabSection:
    """False alarms point by point, kind by kind of noise, and what becomes of a step."""
    rows, all_outcomes = [], []
    for kind in RecordedNoise:
        lab.on_progress(f"histories: {kind.value}, point by point")
        rng = lab.rng(f"online {kind.value}")
        outcomes = []
        for turn in range(lab.times(60, 2)):
            drawn = simulated.shape(kind, rng, BLOCK)
            cv = _SPREADS[turn % len(_SPREADS)]
            quiet = simulated.series(kind, drawn, cv)
            loud = simulated.series(kind, drawn, cv, simulated.step(BLOCK, PLACE, CHANGE))
            outcomes.append(examine_block(detector, quiet, loud))
        all_outcomes += outcomes
        rows.append(write_row(kind.value, sum_up("kind", kind.value, outcomes, promised=False)))
    figures = sum_up("history.online", "simulated noise", all_outcomes, promised=False)
    text = (
        f"Series of {BLOCK} points, CV {', '.join(map(percent, _SPREADS))} in turn; binomial "
        f"shares and constants have their own. {HOW}"
    )
    table = LabTable("Simulated noise, point by point", ("noise", *HEADER[1:]), tuple(rows))
    return LabSection("Histories, simulated noise, point by point", text, figures, (table,))


def write_row(name: str, figures: Sequence[Figure]) -> tuple[str, ...]:
    """Write a detector's figures as a row under ``HEADER``."""
    return (name, *(written(one) for one in figures))


def written(one: Figure) -> str:
    """Write a figure's value as its form asks; a dash where nothing was counted."""
    if not one.simulations:
        return "-"
    return (
        f"{percent(round(one.value, 2))}"
        if one.form is figure.FigureForm.SHARE
        else f"{one.value:.1f}"
    )


def _places(raised: Sequence[Raised], *, confirmed: bool) -> list[int]:
    ordered = [one.alarm.index for one in raised if one.alarm.confirmed or not confirmed]
    # Most points repeat the alarms of the point before.
    return [ordered[0], *(new for old, new in pairwise(ordered) if new != old)] if ordered else []


_SHARE: Final = 0.3
_HIGHER: Final = 0.3
_SPLIT: Final = 20
"""Seed that says which half of the series was tuned on; fixed before anything was."""
_BOUND: Final = 0.9
_PEERS: Final = ("KernelCPD, 1.5 ln n", "Otava, t at 0.001", "asv publish, all its steps")
"""The rules in use elsewhere that look at a whole series."""


def held_back(histories: Mapping[str, Array]) -> Mapping[str, Array]:
    """Leave out the half of the series that the comparison of distributions was tuned on."""
    names = np.random.default_rng(_SPLIT).permutation(sorted(histories))
    return {name: histories[name] for name in sorted(names[len(names) // 2 :])}


def on_held_back(
    lab: Laboratory, histories: Mapping[str, Array], detector: Detector = ours
) -> LabSection:
    """Step into real noise that was not tuned on, as it is and with a second mode."""
    rng = lab.rng("second mode")
    kept = held_back(histories)
    blocks = shuffled_blocks(kept, rng, lab.times(200, 5))
    in_modes = [
        block * np.where(rng.random(len(block)) < _SHARE, 1 + _HIGHER, 1.0) for block in blocks
    ]
    rows: list[tuple[str, ...]] = []
    figures: list[Figure] = []
    for name, some, where in (
        ("history.held_back", blocks, "held-back noise"),
        ("history.two_modes", in_modes, "two modes"),
    ):
        few = some[: lab.times(50, 2)]
        peers = ((rule, FIELD[rule], few) for rule in _PEERS)
        for rule, rule_examined, shown in (("hybridwatch", detector, some), *peers):
            lab.on_progress(f"histories: {where}, {rule}")
            outcomes = [examine_block(rule_examined, block, with_step(block)) for block in shown]
            measured = sum_up(name, where, outcomes, hit_bound=at_least(_BOUND))
            rows.append((where, *write_row(rule, measured)))
            figures += measured if rule_examined is detector else ()
    text = (
        f"{len(blocks)} shuffled stretches of the {len(kept)} series that the comparison of "
        "distributions was not tuned on (the second half of a permutation of all names with seed "
        f"{_SPLIT}; its constants were chosen on the first half and on made noise, the detector's "
        "other constants earlier on all of them). Once as they are, once with "
        f"{percent(_SHARE)} of the points, at random, {percent(_HIGHER)} higher: a second mode. "
        f"{HOW} The other rules saw the first {lab.times(50, 2)} of each."
    )
    header = ("noise", *HEADER)
    table = LabTable("Held-back series, and the same with a second mode", header, tuple(rows))
    return LabSection("Histories, held back and in two modes", text, tuple(figures), (table,))
