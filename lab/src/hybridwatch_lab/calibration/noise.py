"""Noise of known kind: what benchmark series look like when nothing changes, and when one does.

A ``shape`` is drawn once, without unit and level; ``series`` then gives it a spread and levels. So
the same noise can be had with a change and without, and luck told from skill.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import signal, stats

Array = NDArray[np.float64]

_QUESTIONS: Final = 200
_SHARE_RIGHT: Final = 0.75
_AUTOREGRESSION: Final = 0.7
_SETTLING: Final = 50
"""Steps after which an autoregression of 0.7 has forgotten how it began."""
_MODE: Final = 0.9
"""Distance of the two modes from the middle in standard deviations; what is left is within them."""
_DRIFT: Final = 3.0
"""How far the level wanders over a whole series, in standard deviations of its noise."""


class RecordedNoise(Enum):
    """The seven kinds."""

    GAUSSIAN = "Gaussian"
    HEAVY = "heavy tails (t3)"
    BIMODAL = "bimodal"
    DRIFT = "slow drift"
    AUTOCORRELATED = "AR(0.7)"
    BINOMIAL = "binomial, n = 200"
    CONSTANT = "zero variance"


def shape(noise: RecordedNoise, rng: Generator, n: int) -> Array:
    """Draw ``n`` values of mean 0 and variance 1 (drift: about a line; zero variance: all 0)."""
    return _SHAPES[noise](rng, n)


def series(noise: RecordedNoise, drawn: Array, cv: float, level: Array | float = 1.0) -> Array:
    """Give a shape its spread and levels.

    Args:
        noise: The kind that ``drawn`` is of.
        drawn: From ``shape``.
        cv: Coefficient of variation; binomial shares and constants have their own.
        level: The true level at each point, or everywhere.

    Returns:
        Positive values; shares of right answers for binomial noise.
    """
    if noise is RecordedNoise.BINOMIAL:
        truth = np.clip(_SHARE_RIGHT * np.asarray(level), 0, 1)
        right = stats.binom.ppf(stats.norm.cdf(drawn), _QUESTIONS, truth)
        return np.asarray(right / _QUESTIONS, dtype=np.float64)
    # Times multiply: a logarithmic scale keeps them positive however heavy the tail.
    return np.asarray(level * np.exp(cv * drawn), dtype=np.float64)


def step(n: int, place: int, change: float) -> Array:
    """True levels of a series that changes by a fraction at a place."""
    levels = np.ones(n)
    levels[place:] += change
    return levels


def _gaussian(rng: Generator, n: int) -> Array:
    return rng.standard_normal(n)


def _heavy(rng: Generator, n: int) -> Array:
    return np.asarray(rng.standard_t(3, n) / np.sqrt(3.0), dtype=np.float64)


def _bimodal(rng: Generator, n: int) -> Array:
    within = np.sqrt(1 - _MODE**2)
    return np.asarray(_MODE * rng.choice((-1.0, 1.0), n) + within * rng.standard_normal(n))


def _drift(rng: Generator, n: int) -> Array:
    slope = rng.choice((-_DRIFT, _DRIFT))
    return np.asarray(rng.standard_normal(n) + slope * np.linspace(-0.5, 0.5, n))


def _autocorrelated(rng: Generator, n: int) -> Array:
    innovations = rng.standard_normal(n + _SETTLING) * np.sqrt(1 - _AUTOREGRESSION**2)
    return np.asarray(signal.lfilter([1.0], [1.0, -_AUTOREGRESSION], innovations)[_SETTLING:])


def _constant(_rng: Generator, n: int) -> Array:
    return np.zeros(n)


_SHAPES: Final[Mapping[RecordedNoise, Callable[[Generator, int], Array]]] = MappingProxyType(
    {
        RecordedNoise.GAUSSIAN: _gaussian,
        RecordedNoise.HEAVY: _heavy,
        RecordedNoise.BIMODAL: _bimodal,
        RecordedNoise.DRIFT: _drift,
        RecordedNoise.AUTOCORRELATED: _autocorrelated,
        RecordedNoise.BINOMIAL: _gaussian,
        RecordedNoise.CONSTANT: _constant,
    }
)
