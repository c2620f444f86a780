"""Where in the engine's code something was called."""

import sys
from functools import cache
from pathlib import PurePath
from types import FrameType


def name_site(caller: FrameType) -> str:
    """Name the line that a frame is at: ``file:function:line``, the file as it is imported."""
    code = caller.f_code
    return f"{_relative(code.co_filename)}:{code.co_qualname}:{caller.f_lineno}"


@cache
def _relative(file: str) -> str:
    """Name a file from where it is imported: the same on every machine, and nobody's folders."""
    path = PurePath(file)
    folders = [PurePath(folder) for folder in sys.path if folder]
    inside = [path.relative_to(folder) for folder in folders if path.is_relative_to(folder)]
    return str(min(inside, key=lambda found: len(found.parts), default=PurePath(path.name)))
