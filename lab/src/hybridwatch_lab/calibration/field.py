"""Rules for two builds in use elsewhere, in their simplest form, to set beside ours."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np
from scipy import stats

from hybridwatch.analysis.paired_proportion import Pairs
from hybridwatch_lab.calibration.noise import Array

_FIXED: Final = 0.02
_STRICT: Final = 0.002
_FACTOR: Final = 1.1
_LEVEL: Final = 0.05
_SIGMAS: Final = 2.0
_TOLERANCE: Final = 0.08

RateRule = Callable[[Array, Array], bool]
"""From the trials of the baseline and those of the contender to "this changed"."""
AnswerRule = Callable[[Pairs, float], bool]
"""From a fourfold table and the baseline's share of right answers to "this is worse"."""


def _median_change(baseline: Array, contender: Array) -> float:
    return float(np.median(contender) / np.median(baseline))


def fixed_two_percent(baseline: Array, contender: Array) -> bool:
    """2 % between the medians, as vLLM's performance evaluation."""
    return abs(_median_change(baseline, contender) - 1) > _FIXED


def ranks_alone(baseline: Array, contender: Array) -> bool:
    """Mann-Whitney at 0.05, as benchstat."""
    return bool(stats.mannwhitneyu(baseline, contender).pvalue < _LEVEL)


def ranks_and_factor(baseline: Array, contender: Array) -> bool:
    """Mann-Whitney at 0.002 and a factor of 1.1, as ``asv compare``."""
    change = _median_change(baseline, contender)
    return max(change, 1 / change) > _FACTOR and bool(
        stats.mannwhitneyu(baseline, contender).pvalue < _STRICT
    )


def two_sigma(pairs: Pairs, share: float) -> bool:
    """Two standard errors between unpaired shares, as vLLM's performance evaluation."""
    later = share + pairs.difference
    error = np.sqrt((share * (1 - share) + later * (1 - later)) / pairs.n)
    return bool(-pairs.difference > _SIGMAS * error)


def relative_tolerance(pairs: Pairs, share: float) -> bool:
    """8 % of the share itself, as the lm-eval gates of vLLM's CI."""
    return bool(-pairs.difference > _TOLERANCE * share)


RATE_RULES: Final[Mapping[str, RateRule]] = MappingProxyType(
    {
        "2 % between medians (vLLM perf-eval)": fixed_two_percent,
        "Mann-Whitney 0.05 (benchstat)": ranks_alone,
        "Mann-Whitney 0.002 and 1.1 (asv compare)": ranks_and_factor,
    }
)
ANSWER_RULES: Final[Mapping[str, AnswerRule]] = MappingProxyType(
    {
        "2 sigma, unpaired (vLLM perf-eval)": two_sigma,
        "8 % of the share (vLLM's lm-eval gates)": relative_tolerance,
    }
)
