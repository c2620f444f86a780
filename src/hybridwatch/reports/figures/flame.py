"""The flame graph of a slower side: wide is what takes its time, red what takes more than before.

Root on top, as an icicle; colours by difference (Gregg, "The Flame Graph", CACM 59(6), 2016). The
colour is that of a function's own time, wherever it was called from: a function that was put around
others would else turn all of them red.
"""

from collections import Counter
from typing import Any, Final

import plotly.graph_objects as go

from hybridwatch.analysis.growth import LEAST, compute_shares, without_line
from hybridwatch.records.store.profiles import Passes
from hybridwatch.reports.figures.base import base_figure, escaped

_FULL: Final = 0.05
"""Change of a share at which a colour is full."""
_COLOURS: Final = ((0.0, "#3b7ddd"), (0.5, "#d9d9d9"), (1.0, "#d4483b"))
_WHOLE: Final = 0.99
"""The outermost functions that nearly all samples have in common are left out."""
_ROW: Final = 22
"""Pixels."""


def draw_flames(baseline: Passes, contender: Passes) -> tuple[go.Figure, dict[str, list[Any]]]:
    """Draw what the contender spends at least 0.5 % of its time in; gives the numbers as well."""
    shares = _shares_of_paths(contender)
    before, after = compute_shares(baseline), compute_shares(contender)
    paths, names = list(shares), [path[-1] for path in shares]
    data: dict[str, list[Any]] = {
        "function": [" > ".join(path) for path in paths],
        "share": list(shares.values()),
        "own baseline": [before.get(name, 0.0) for name in names],
        "own contender": [after.get(name, 0.0) for name in names],
    }
    ids = {path: str(at) for at, path in enumerate(paths)}
    own = list(zip(data["own baseline"], data["own contender"], strict=True))
    trace: dict[str, Any] = {
        "type": "icicle",
        "ids": list(ids.values()),
        "labels": [escaped(name.partition(" ")[0]) for name in names],
        "parents": [ids.get(path[:-1], "") for path in paths],
        "values": data["share"],
        "branchvalues": "total",
        "sort": False,
        "tiling": {"orientation": "v"},
        "marker": {
            "colors": [new - old for old, new in own],
            "colorscale": _COLOURS,
            "cmin": -_FULL,
            "cmax": _FULL,
        },
        "hovertext": [
            f"<b>{escaped(name)}</b><br>{share:.1%} of engine time with what it calls<br>"
            f"its own: {old:.1%} before, {new:.1%} now"
            for name, share, (old, new) in zip(names, data["share"], own, strict=True)
        ],
        "hoverinfo": "text",
        "textfont": {"color": "#111111"},
        "pathbar": {"visible": False},
    }
    layout: dict[str, Any] = {
        "height": _ROW * len(set(map(len, paths))) + 24,
        "uniformtext": {"minsize": 9, "mode": "hide"},
        "margin": {"l": 8, "r": 8, "t": 8, "b": 16},
    }
    hidden = {"visible": False}
    return base_figure([trace], xaxis=hidden, yaxis=hidden, **layout), data


def _shares_of_paths(side: Passes) -> dict[tuple[str, ...], float]:
    """Give the share of the samples that begin with each path of functions, callers first."""
    counted = Counter[tuple[str, ...]]()
    for stack, samples in (one for stacks in side for one in stacks.items()):
        path = tuple(map(without_line, stack))
        counted.update({path[:depth]: samples for depth in range(1, len(path) + 1)})
    whole = sum(sum(stacks.values()) for stacks in side)
    shares = {path: samples / whole for path, samples in sorted(counted.items())}
    trunk = max((path for path, share in shares.items() if share >= _WHOLE), key=len, default=())
    return {
        path: share
        for path, share in shares.items()
        if share >= LEAST and path[: len(trunk)] == trunk
    }
