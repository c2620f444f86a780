"""Requests of a step, from which launches of the kernels of model runner V2 are drawn."""

from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from hybridwatch_engine_lab.studies.kernels.draw import Draw, int32

ROWS, ROOM, GROUPS, WIDTH, BLOCK = 8, 48, 2, 6, 8
"""Places of requests, tokens of a batch, groups of layers, blocks of a request, tokens of one."""

Launch = tuple[tuple[int, ...], dict[str, Any], tuple[str, ...]]
"""The grid, the arguments, and the names of those that are written."""

LaunchMakers = Mapping[str, Callable[[Draw], Launch]]
"""A function for each stand-in, which draws a launch of its kernel."""


class DrawnBatch:
    """Requests of a step: none, one or several, in any places, of any lengths."""

    def __init__(self, draw: Draw, *, absent: bool = False, least: int = 0) -> None:
        self.draw, self.requests = draw, draw.one((least, 1, draw.count(1, 5)))
        self.rows = [row - 1 for row in draw.slots(self.requests, ROWS)]
        if absent and self.rows and draw.chance(0.3):
            self.rows[-1] = -1
        self.lengths = [draw.one((1, 1, draw.count(1, 9))) for _ in self.rows]
        self.idx_mapping = int32(self.rows)
        self.starts = int32([0, *accumulate(self.lengths)])
        self.computed = self.numbers(0, 20, ROWS)
        self.lookup = {"idx_mapping": self.idx_mapping, "query_start_loc": self.starts}

    def numbers(self, least: int, most: int, *shape: int) -> Tensor:
        """Integers, both ends included."""
        count = torch.Size(shape).numel()
        return int32([self.draw.count(least, most) for _ in range(count)]).reshape(shape)

    def draw_logits(self) -> tuple[Tensor, int]:
        """Where each request's logits begin, and how many there are."""
        ends = [0, *accumulate(self.draw.count(1, length) for length in self.lengths)]
        return int32(ends), ends[-1]
