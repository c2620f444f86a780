"""How often a search by times names the right commit, compared with other ways to search.

``python -m hybridwatch_lab.calibration.bisection --seed 1 --write lab/docs/bisect-simulation.md``
simulates histories whose culprit is known and writes the page.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Final

import numpy as np
from scipy import special

from hybridwatch.orchestration.bisect.posterior import (
    CONFIDENCE,
    SESSION_SCATTER,
    Array,
    Belief,
    Effect,
    NextProbe,
    find_timed,
)
from hybridwatch.orchestration.bisect.question import ProbeAnswer, find_exact
from hybridwatch_lab.calibration.laboratory import write_page
from hybridwatch_lab.calibration.made_history import (
    BROKEN,
    BUDGET,
    COMMITS,
    DISTURBED,
    DUETS,
    HOW_MUCH,
    IN_TURN,
    HistorySetting,
    MadeHistory,
    Timing,
    made_history,
)

_JEFFREYS: Final = 0.5
_MOST: Final = 200


def find_by_bayesect(
    weights: Sequence[float],
    measure: Callable[[int], bool | None],
    may_go_on: Callable[[], bool] = lambda: True,
) -> Belief:
    """Search until one commit is likely enough.

    This is the rule of git-bayesect, written from the description of its version 1.2. How often a
    commit before the change says yes is not known, nor one behind it; both shares have a Beta
    distribution (Jeffreys' prior), which is integrated out. Next comes the commit whose answer is
    expected to leave the least entropy. One that gives no answer is no longer suspected.

    Args:
        weights: How likely each commit is before, from position 1; position 0 said no, and the last
            one yes.
        measure: Whether a commit says yes; ``None`` when it says nothing.
        may_go_on: Whether there is time for another one.
    """
    last = len(weights)
    prior = np.asarray(weights, dtype=np.float64).copy()
    yes, no = np.zeros(last + 1), np.zeros(last + 1)
    no[0], yes[last] = 1, 1
    for _ in range(_MOST):
        masses = _posterior(prior, yes, no)
        if masses.max() >= CONFIDENCE or not may_go_on():
            break
        at = _least_entropy(masses, prior, yes, no)
        answer = measure(at)
        if answer is None:  # an end has an answer
            prior[at - 1] = 0.0
        else:
            (yes if answer else no)[at] += 1
    return Belief(_posterior(prior, yes, no)[:, None])


def _posterior(prior: Array, yes: Array, no: Array) -> Array:
    yes_behind, no_behind, yes_before, no_before = _sides(yes, no)
    with np.errstate(divide="ignore"):
        log = np.log(prior) + _log_beta(yes_behind, no_behind) + _log_beta(yes_before, no_before)
    masses: Array = np.exp(log - special.logsumexp(log))
    return masses


def _least_entropy(masses: Array, prior: Array, yes: Array, no: Array) -> int:
    """Find the commit whose next answer leaves the least entropy, on average."""
    yes_behind, no_behind, yes_before, no_before = _sides(yes, no)
    behind = (_JEFFREYS + yes_behind) / (2 * _JEFFREYS + yes_behind + no_behind)
    before = (_JEFFREYS + yes_before) / (2 * _JEFFREYS + yes_before + no_before)
    positions = np.arange(len(masses) + 1)
    # [commit that is measured, the good end too; commit that is the change]
    says_yes = np.where(positions[:, None] >= positions[1:], behind, before)
    left = np.zeros(len(positions))
    for share in (says_yes, 1 - says_yes):
        joint = masses * share
        whole = joint.sum(axis=1)
        left += special.xlogy(whole, whole) - special.xlogy(joint, joint).sum(axis=1)
    left[1:][prior == 0] = np.inf
    return int(np.argmin(left))


def _sides(yes: Array, no: Array) -> tuple[Array, Array, Array, Array]:
    """Answers behind the change and before it, for each place of the change."""
    yes_before, no_before = np.cumsum(yes)[:-1], np.cumsum(no)[:-1]
    return yes.sum() - yes_before, no.sum() - no_before, yes_before, no_before


def _log_beta(yes: Array, no: Array) -> Array:
    found: Array = special.betaln(_JEFFREYS + yes, _JEFFREYS + no)
    return found


HISTORIES: Final = 500
NOISES: Final = (0.01, 0.03, 0.05)
STEPS: Final = (0.03, 0.06, 0.12)
SCATTERS: Final = (0.01, 0.02)
"""Of sessions next to busy neighbours; with the middle noise, and all steps but the smallest."""
DUET_NOISES: Final = (0.01, 0.02, 0.03)
"""Of duets; with all steps but the largest."""


@dataclass(frozen=True, slots=True)
class NamedRange:
    """What a search said: the change is behind ``good``, and at ``bad`` or before."""

    good: int
    bad: int

    def holds(self, culprit: int) -> bool:
        """Whether that is so."""
        return self.good < culprit <= self.bad


Way = Callable[[MadeHistory, Effect], NamedRange]


def ours(history: MadeHistory, effect: Effect) -> NamedRange:
    """As ``hybridwatch bisect`` searches."""
    return _ours(history, effect, history.weights)


def without_prior(history: MadeHistory, effect: Effect) -> NamedRange:
    """The same, with nothing known of the commits."""
    return _ours(history, effect, (1.0,) * len(history.weights))


def with_fixed_scatter(history: MadeHistory, effect: Effect) -> NamedRange:
    """Take the scatter of a quiet machine for granted, and measure no pair."""
    begin = effect.belief(history.weights)
    is_quiet = (effect.scatters == SESSION_SCATTER) & (effect.variations == 0)
    known = np.where(is_quiet, begin.joint, 0.0)
    return _named(_searched(history, effect, replace(begin, joint=known / known.sum())))


def plainly(history: MadeHistory, effect: Effect) -> NamedRange:
    """Halving, where a session on the wrong side of half the effect decides for good."""

    def measure(at: int) -> ProbeAnswer:
        seen = history.measure(NextProbe(at, history.timing.blocks))
        if seen is None:
            return ProbeAnswer.SKIPPED
        return ProbeAnswer.CHANGED if effect.is_changed(seen) else ProbeAnswer.UNCHANGED

    place = find_exact(len(history.weights), measure, history.may_go_on)
    return NamedRange(place.good, place.bad)


def by_bayesect(history: MadeHistory, effect: Effect) -> NamedRange:
    """As git-bayesect, given of each session on which side of half the effect it lies."""

    def measure(at: int) -> bool | None:
        seen = history.measure(NextProbe(at, history.timing.blocks))
        return None if seen is None else effect.is_changed(seen)

    return _named(find_by_bayesect(history.weights, measure, history.may_go_on))


WAYS: Final[dict[str, Way]] = {
    "hybridwatch": ours,
    "hybridwatch, all commits alike": without_prior,
    "scatter of a quiet machine taken for granted": with_fixed_scatter,
    "plain bisection": plainly,
    "git-bayesect's rule": by_bayesect,
}


@dataclass(frozen=True, slots=True)
class BisectionOutcome:
    """What one way made of one history."""

    right: bool
    holds: bool
    width: int
    sessions: int
    minutes: float


SETTINGS: Final = (
    *(HistorySetting(noise, step) for noise in NOISES for step in STEPS),
    *(HistorySetting(NOISES[1], step, scatter) for scatter in SCATTERS for step in STEPS[1:]),
    *(HistorySetting(noise, step, timing=DUETS) for noise in DUET_NOISES for step in STEPS[:2]),
)


def simulated(way: Way, setting: HistorySetting, seed: int, number: int) -> BisectionOutcome | None:
    """Search one history.

    Returns:
        ``None`` if its ends do not differ beyond noise, so that nothing is searched.
    """
    history = made_history(setting, np.random.default_rng((seed, number)))
    effect = history.ends()
    if not effect.is_clear:
        return None
    named = way(history, effect)
    width = named.bad - named.good
    holds = named.holds(history.culprit)
    # Besides the culprit only commits that could not be measured may be named.
    others = {*range(named.good + 1, named.bad + 1)} - {history.culprit}
    alone = others <= history.broken
    return BisectionOutcome(holds and alone, holds, width, history.sessions, history.minutes)


def page(seed: int, histories: int, on_progress: Callable[[str], None]) -> str:
    """Simulate everything and write the page."""
    rows = []
    for setting in SETTINGS:
        on_progress(str(setting))
        for name, way in WAYS.items():
            found = [simulated(way, setting, seed, number) for number in range(histories)]
            rows.append(_row(setting, name, found))
    head = (
        "| timed | noise | step | sessions apart | way | ends differ | right | holds it | named "
        "| sessions | minutes |"
    )
    return "\n".join(
        [
            "# Bisection by times, simulated",
            "",
            (
                f"Written by `python -m hybridwatch_lab.calibration.bisection --seed {seed} "
                f"--histories {histories} --write lab/docs/bisect-simulation.md`."
            ),
            "",
            *_explanation(histories),
            "",
            head,
            "|---|---|---|---|---|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _explanation(histories: int) -> list[str]:
    made = (
        f"{histories} histories a row, each of {COMMITS} commits of which {BROKEN} do not start "
        "and one made a step slower. The noise is that of one block's log ratio; "
        f"{DISTURBED:.0%} of the blocks are {HOW_MUCH:g} times as noisy. *Sessions apart*: the "
        f"standard deviation of sessions of the same builds. {_render_costs(IN_TURN)} "
        f"{_render_costs(DUETS)} {BUDGET:g} minutes are the budget. "
        "Culprits are drawn by the weights that the first way knows."
    )
    columns = (
        "*Ends differ*: the ends differ beyond noise, without which nothing is searched; the rest "
        "is of these. *Right*: the culprit alone is named, but for commits beside it that do not "
        "start. *Holds it*: what is named holds the culprit. *Named*: commits that are named, "
        "mean. *Sessions*: behind the ends, median. Plain bisection and git-bayesect make "
        f"sessions of {IN_TURN.blocks} blocks, or of {DUETS.blocks} duets, and are told on which "
        "side of half the effect each lies. The first two ways measure the pair that they name "
        "side by side, and search on if it does not hold."
    )
    return [made, "", columns]


def _render_costs(timing: Timing) -> str:
    name, start, block = timing.name, timing.costs.start, timing.costs.block
    if timing.restarts:
        return f"Of {name} each block starts its engines again, and takes {block:g}."
    return f"A session {name} takes {start:g} minutes to start and {block:g} a block."


def _row(setting: HistorySetting, name: str, found: Sequence[BisectionOutcome | None]) -> str:
    made = [one for one in found if one is not None]
    numbers = f"{setting.noise:.0%}", f"{setting.step:.0%}", f"{setting.scatter:.1%}"
    machine = [setting.timing.name, *numbers]
    cells = [*machine, name, _share(len(made), len(found))]
    if made:
        cells += [
            _share(sum(one.right for one in made), len(made)),
            _share(sum(one.holds for one in made), len(made)),
            f"{fmean(one.width for one in made):.1f}",
            f"{median(one.sessions for one in made):.0f}",
            f"{median(one.minutes for one in made):.0f}",
        ]
    return f"| {' | '.join(cells)} |"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"


def _ours(history: MadeHistory, effect: Effect, weights: Sequence[float]) -> NamedRange:
    belief = _searched(history, effect, effect.belief(weights))
    while (best := belief.best()).mass >= CONFIDENCE and history.may_go_on():
        seen = history.pair(best.good, best.bad)
        if effect.is_changed(seen):
            break
        likelihoods = effect.log_likelihoods(seen)
        belief = belief.after(best.bad, *likelihoods, reference=best.good)
        belief = _searched(history, effect, belief)
    return _named(belief)


def _searched(history: MadeHistory, effect: Effect, begin: Belief) -> Belief:
    return find_timed(begin, effect, history.timing.costs, history.measure, history.may_go_on)


def _named(belief: Belief) -> NamedRange:
    best = belief.best()
    found = best if best.mass >= CONFIDENCE else belief.credible()
    return NamedRange(found.good, found.bad)


if __name__ == "__main__":
    write_page(__doc__, "histories", HISTORIES, page)
