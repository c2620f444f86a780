"""The rule of git-bayesect, in its simplest form, to see what ours is worth.

It is written from the description of its version 1.2 and takes answers of yes and no alone. Nobody
knows how often a commit before the change says yes, nor one behind it; both shares have a Beta
distribution (Jeffreys' prior), which is integrated out. Next comes the commit whose answer is
expected to leave the least entropy. A commit that gives no answer is no longer suspected.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from scipy import special

from hybridwatch.orchestration.bisect.posterior import CONFIDENCE, Array, Belief

_JEFFREYS: Final = 0.5
_MOST: Final = 200


def find_by_bayesect(
    weights: Sequence[float],
    ask: Callable[[int], bool | None],
    may_go_on: Callable[[], bool] = lambda: True,
) -> Belief:
    """Search until one commit is likely enough.

    Args:
        weights: How likely each commit is before, from position 1; position 0 said no, and the last
            one yes.
        ask: Whether a commit says yes; ``None`` when it says nothing.
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
        answer = ask(at)
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
    # [commit that is asked, the good end too; commit that is the change]
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
