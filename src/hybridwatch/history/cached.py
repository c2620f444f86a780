"""Answers that are kept, as long as nobody asks another index: one never changes, and is large."""

from collections.abc import Callable
from functools import lru_cache, partial, wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

_MOST: Final = 1024

_I = TypeVar("_I")
_P = ParamSpec("_P")
_R = TypeVar("_R")


def cached_per_index(
    ask: Callable[Concatenate[_I, _P], _R],
) -> Callable[Concatenate[_I, _P], _R]:
    """Make a function remember what it said of the index that it was asked last."""

    @lru_cache(maxsize=1)
    def answers_of(index: _I) -> Callable[..., _R]:
        return lru_cache(maxsize=_MOST)(partial(ask, index))

    @wraps(ask)
    def kept(index: _I, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return answers_of(index)(*args, **kwargs)

    return kept
