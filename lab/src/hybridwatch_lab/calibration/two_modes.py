"""A step in a series that falls into a second mode again and again, and series not tuned on.

Machines have such modes: a turbo that comes and goes, a neighbour, two kinds of memory layout.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from hybridwatch.analysis.calibration.figure import Figure, at_least, percent
from hybridwatch_lab.calibration.detectors import Detector, ours
from hybridwatch_lab.calibration.laboratory import Laboratory, LabSection, LabTable
from hybridwatch_lab.calibration.noise import Array
from hybridwatch_lab.calibration.online import (
    HEADER,
    HOW,
    examine_block,
    shuffled_blocks,
    sum_up,
    with_step,
    write_row,
)
from hybridwatch_lab.calibration.rivals import FIELD

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
        for rule, asked, shown in (("hybridwatch", detector, some), *peers):
            lab.tell(f"histories: {where}, {rule}")
            outcomes = [examine_block(asked, block, with_step(block)) for block in shown]
            measured = sum_up(name, where, outcomes, hit_bound=at_least(_BOUND))
            rows.append((where, *write_row(rule, measured)))
            figures += measured if asked is detector else ()
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
