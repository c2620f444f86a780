"""What every experiment is given: a seed of its own, how long it may take, whom to tell."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from hybridwatch.analysis.calibration.figure import Figure


@dataclass(frozen=True, slots=True)
class Laboratory:
    """Where an experiment is made.

    Attributes:
        seed: Of the whole calibration.
        quick: Whether few simulations must do.
        tell: Takes one line of progress.
    """

    seed: int
    quick: bool
    tell: Callable[[str], None]

    def times(self, full: int, quick: int) -> int:
        """Choose how often to simulate."""
        return quick if self.quick else full

    def rng(self, name: str) -> Generator:
        """Give an experiment its own randomness, whatever ran before it."""
        return np.random.default_rng((self.seed, zlib.crc32(name.encode())))


@dataclass(frozen=True, slots=True)
class LabTable:
    """Figures side by side.

    Attributes:
        caption: What the table tells, one line.
        header: Names of the columns; the first is that of the rows.
        rows: Text of the cells.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class LabSection:
    """The outcome of one experiment."""

    title: str
    text: str
    figures: tuple[Figure, ...]
    tables: tuple[LabTable, ...] = ()
