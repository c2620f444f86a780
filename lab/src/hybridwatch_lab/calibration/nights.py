"""``python -m hybridwatch_lab.calibration.nights``: false red nights, and what a second look costs.

A report promises one false red in twenty; people read nights, and the folder of a month. Reports of
six unchanged scenarios are judged night after night as they were before there was a second look,
and with it: what is red, or better, is measured again on new engines, and counts only if both looks
say so. Then one of nine timed metrics becomes 6 % slower. Each start of an engine may have luck of
its own, which all its trials and metrics share; a second look has new starts. With ``--starts``
the blocks of each look are spread over several (``hybridwatch run --starts``).
"""

import argparse
import itertools
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from hybridwatch.analysis.judge import FIRST_LEVEL, judge_together
from hybridwatch.analysis.verdict import Comparison, Verdict
from hybridwatch_lab.calibration.families import BLOCKS, NINE, SPREADS
from hybridwatch_lab.calibration.figure import at_most, share
from hybridwatch_lab.calibration.laboratory import Laboratory
from hybridwatch_lab.calibration.reports import report_on
from hybridwatch_lab.calibration.simulated import Array

SCENARIOS: Final = 6
NIGHTS: Final = 30
BOUND: Final = at_most(1 / NIGHTS)
"""Of the nights of unchanged engines, so many may be red."""
LUCK: Final = (0.0, 0.005, 0.01, 0.02)
"""Standard deviation of the logarithm by which a start makes an engine faster or slower."""
SLOWER: Final = 1.06

_SEED: Final = 1
_MONTHS: Final = 30
_REPORTS: Final = 1000
_SURE: Final = 0.95
_CHANGES: Final = frozenset({Verdict.REGRESSION, Verdict.IMPROVEMENT})


@dataclass(frozen=True, slots=True)
class World:
    """What reports are drawn from.

    Attributes:
        blocks: Of each look.
        luck: As ``LUCK``.
        slower: By which factor the first metric is slower on the contender.
        starts: Starts of each side over which the blocks of a look are spread.
    """

    blocks: int
    luck: float
    slower: float = 1.0
    starts: int = 1

    @property
    def start_of(self) -> npt.NDArray[np.int_]:
        """Number of the start of each block, as ``measurement.plan`` spreads them."""
        ends = self.blocks * np.arange(self.starts + 1) // self.starts
        return np.repeat(np.arange(self.starts), np.diff(ends))

    def numbers(self, looks: int) -> Sequence[int]:
        """Give the start of each block of so many looks; none where a look has one."""
        each = [self.start_of + look * self.starts for look in range(looks)]
        return np.hstack(each).tolist() if self.starts > 1 else ()

    def drawn(self, rng: Generator) -> list[Array]:
        """Draw one look: the baseline's rates and the contender's, a metric a row."""
        sides = [
            np.exp(
                self.luck * rng.standard_normal(self.starts)[self.start_of]
                + SPREADS[0] * rng.standard_normal((NINE, self.blocks))
            )
            for _ in range(2)
        ]
        sides[1][0] /= self.slower  # rates: less is worse
        return sides


@dataclass(frozen=True, slots=True)
class NightReport:
    """What becomes of one report.

    Attributes:
        once: Metrics that are red in the first look by itself.
        twice: Metrics that are red where what changed is measured again.
        again: Whether it is measured again.
    """

    once: Sequence[bool]
    twice: Sequence[bool]
    again: bool


def make_report(rng: Generator, world: World, first_level: float = FIRST_LEVEL) -> NightReport:
    """Measure a scenario once, or twice, and judge it.

    ``first_level`` is below which p the first look has a change measured again.
    """
    look = world.drawn(rng)
    first = _drafts(look, world.numbers(1))
    once = _reds(judge_together(first)[0])
    named = judge_together(first, first_level)[0]
    if not any(one.verdict in _CHANGES for one in named):
        return NightReport(once, [False] * NINE, again=False)
    other = world.drawn(rng)
    whole = [np.hstack(both) for both in zip(look, other, strict=True)]
    looks = first, _drafts(other, world.numbers(1))
    judged = judge_together(_drafts(whole, world.numbers(2)), looks=looks)[0]
    return NightReport(once, _reds(judged), again=True)


def _drafts(sides: Sequence[Array], starts: Sequence[int]) -> Sequence[Comparison]:
    drafts = report_on(sides, control=lambda drafts, _: tuple(drafts), starts=starts).comparisons
    return [
        replace(one, metric=replace(one.metric, id=f"{one.metric.id}.{place}"))
        for place, one in enumerate(drafts)
    ]


def _reds(judged: Sequence[Comparison]) -> list[bool]:
    return [one.verdict is Verdict.REGRESSION for one in judged]


@dataclass(frozen=True, slots=True)
class NightRates:
    """Shares of reports, of nights and of months that are red where nothing changed."""

    report: float
    nights: Sequence[bool]
    clean_months: float

    @property
    def night(self) -> float:
        """Share of the nights."""
        return float(np.mean(self.nights))


def rates_of(red: Sequence[bool]) -> NightRates:
    """Put reports together to nights, and nights to months; whole months of reports."""
    months = np.asarray(red, dtype=bool).reshape((-1, NIGHTS, SCENARIOS))
    nights = np.any(months, axis=2)
    clean = ~np.any(nights, axis=1)
    return NightRates(float(months.mean()), nights.ravel().tolist(), float(clean.mean()))


def main() -> int:
    """Parse the command line, simulate, print; 1 if nights without luck are red too often."""
    parser = argparse.ArgumentParser(prog="python -m hybridwatch_lab.calibration.nights")
    parser.add_argument("--seed", type=int, default=_SEED)
    parser.add_argument("--months", type=int, default=_MONTHS, help="of unchanged engines")
    parser.add_argument("--reports", type=int, default=_REPORTS, help="of a slower one")
    parser.add_argument("--starts", type=int, nargs="+", default=[1], help="of a side and look")
    parser.add_argument("--blocks", type=int, nargs="+", default=BLOCKS, help="of a look")
    parser.add_argument("--luck", type=float, nargs="+", default=LUCK, help="as fractions")
    options = parser.parse_args()
    lab = Laboratory(options.seed, quick=False, on_progress=lambda _: None)
    cells = list(itertools.product(options.blocks, options.starts, options.luck))
    head = "blocks", "starts", "luck", "rule"
    _print_row(*head, "engines started", "red reports", "red nights", "a month", "clean months")
    refuted = [_print_unchanged(lab, World(b, luck, 1, s), options.months) for b, s, luck in cells]
    _print_row(*head, "found", "another red", "nights (mean)", "nights (95 %)")
    for blocks, starts, luck in cells:
        _print_slower(lab, World(blocks, luck, SLOWER, starts), options.reports)
    return int(any(refuted))


def _print_unchanged(lab: Laboratory, world: World, months: int) -> bool:
    """Print how often unchanged engines are red, and say whether that refutes the promise."""
    rng = _rng(lab, "nights", world)
    made = [make_report(rng, world) for _ in range(months * NIGHTS * SCENARIOS)]
    again = float(np.mean([one.again for one in made]))
    rules = {
        "once": (0.0, [any(one.once) for one in made]),
        f"twice ({_percent(again)} measured again)": (again, [any(one.twice) for one in made]),
    }
    refuted = False
    for rule, (more, red) in rules.items():
        rates = rates_of(red)
        _print_row(
            *_place(world),
            rule,
            f"{2 * world.starts * (1 + more):.1f}",
            _percent(rates.report),
            _percent(rates.night),
            f"{NIGHTS * rates.night:.1f}",
            _percent(rates.clean_months),
        )
        refuted = share("red", "red nights", rates.nights, BOUND).refuted
    return refuted and not world.luck


def _print_slower(lab: Laboratory, world: World, reports: int) -> None:
    rng = _rng(lab, "slower", world)
    made = [make_report(rng, world) for _ in range(reports)]
    for rule, reds in (("once", [r.once for r in made]), ("twice", [r.twice for r in made])):
        found = float(np.mean([first for first, *_ in reds]))
        others = float(np.mean([any(rest) for _, *rest in reds]))
        missed = min(max(1 - found, 1 / reports), 1 - 1 / reports)
        sure = math.ceil(math.log(1 - _SURE) / math.log(missed))
        _print_row(
            *_place(world),
            rule,
            _percent(found),
            _percent(others),
            f"{1 / found:.1f}" if found else "never",
            f"{sure}" if found else "never",
        )


def _rng(lab: Laboratory, what: str, world: World) -> Generator:
    spread = f" {world.starts}" if world.starts > 1 else ""
    return lab.rng(f"{what} {world.blocks} {world.luck}{spread}")


def _place(world: World) -> tuple[str, str, str]:
    return f"{world.blocks}", f"{world.starts}", _percent(world.luck)


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"


def _print_row(*cells: str) -> None:
    sys.stdout.write(f"| {' | '.join(cells)} |\n")


if __name__ == "__main__":
    sys.exit(main())
