"""Loads a module of the user's own from a folder that is no package here."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

_PACKAGE: Final = "hybridwatch_own"


def load_own(folder: Path, name: str, place: str) -> ModuleType:
    """Load ``name.py`` from a folder, alone: it cannot import what lies beside it.

    Raises:
        ValueError: There is no such file, or its code cannot be loaded.
    """
    file = folder / f"{name}.py"
    spec = spec_from_file_location(f"{_PACKAGE}.{name}", file) if file.is_file() else None
    if spec is None or spec.loader is None:
        raise ValueError(f"{place}: expected a file {name}.py in {folder}")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        # Whatever it is: raised as it comes, nobody would know whose code it is.
        raise ValueError(f"{place}: {name}.py cannot be loaded: {error!r}") from error
    return module
