"""Events whose waits can be seen.

``torch.Event`` is a static type of C, whose methods nobody can replace, and a wait for one of its
events is told by nothing else: torch's sync debug mode leaves events out. So on a CUDA engine the
name stands for a subclass that adds nothing, as ``torch.cuda.Event`` is one. Only events made
afterwards are of it, so this comes before the engine makes its own.
"""

from functools import cache
from typing import Any

from hybridwatch_engine.patch import Patch, PatchSet

_IS_HEAP_TYPE = 1 << 9
"""``Py_TPFLAGS_HEAPTYPE``: a type whose attributes can be set."""


@cache
def watchable_events() -> PatchSet:
    """The patch, made once per process."""
    import torch

    return PatchSet(Patch(torch, "Event", _subclass))


def can_be_watched(kind: type) -> bool:
    """Whether methods of a type can be replaced."""
    return bool(kind.__flags__ & _IS_HEAP_TYPE)


def _subclass(original: Any) -> Any:
    return type("Event", (original,), {"__module__": "torch", "__doc__": original.__doc__})
