"""What the harness asks of the engine it starts: one JSON object in one environment variable.

An engine started without the variable is left exactly as released.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final, Literal

VARIABLE = "HYBRIDWATCH_ENGINE"
INTERPRET_VARIABLE = "HYBRIDWATCH_INTERPRET"
"""Set by a person rather than by the harness: 1 asks for ``interpret_kernels``."""

_KEYS: Final = {
    *("graph_replay", "fixes", "model_runner", "interpret_kernels", "own_fixes", "own_mutants"),
    *("mutants", "planted"),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Wishes for one engine.

    Attributes:
        active: Whether the variable was set at all.
        graph_replay: Replay FULL graphs on the CPU (``cpu.graph_replay``, ``cpu.graph_replay_v2``).
        fixes: Fix id to whether it shall be in; fixes not named stay as released.
        own_fixes: Folders of fixes of the user's own.
        own_mutants: Folders of mutants of the user's own.
        mutants: Folders of mutants that nothing but ``hybridwatch mutants`` and ``fuzz`` ask for.
        planted: Faults that shall be in from the start.
        model_runner: Which of vLLM's two model runners shall work; None leaves it to vLLM. On a CPU
            V2 needs Triton's interpreter (``cpu.triton_interpreter``).
        interpret_kernels: Have the interpreter run every kernel of V2 on a CPU, also those that
            something stands in for (``cpu.runner_kernels``).
    """

    active: bool = False
    graph_replay: bool = False
    fixes: Mapping[str, bool] = field(default_factory=dict)
    model_runner: Literal["v1", "v2"] | None = None
    interpret_kernels: bool = False
    own_fixes: tuple[Path, ...] = ()
    own_mutants: tuple[Path, ...] = ()
    mutants: tuple[Path, ...] = ()
    planted: tuple[str, ...] = ()


def from_environment() -> Settings:
    """Read the settings of this process."""
    text = os.environ.get(VARIABLE)
    if not text:
        return Settings()
    raw = json.loads(text)
    if not isinstance(raw, dict) or set(raw) - _KEYS:
        keys = ", ".join(sorted(_KEYS))
        raise ValueError(f"{VARIABLE}: expected an object with nothing but {keys}, got {text}")
    replay, runner = bool(raw.get("graph_replay", False)), raw.get("model_runner")
    if runner not in {None, "v1", "v2"}:
        raise ValueError(f'{VARIABLE}: model_runner: expected "v1" or "v2", got {runner!r}')
    return Settings(
        active=True,
        graph_replay=replay,
        fixes={str(fix): bool(wanted) for fix, wanted in raw.get("fixes", {}).items()},
        model_runner=runner,
        interpret_kernels=_interprets(raw),
        own_fixes=tuple(map(Path, raw.get("own_fixes", ()))),
        own_mutants=tuple(map(Path, raw.get("own_mutants", ()))),
        mutants=tuple(map(Path, raw.get("mutants", ()))),
        planted=tuple(raw.get("planted", ())),
    )


def _interprets(raw: Mapping[str, object]) -> bool:
    return bool(raw.get("interpret_kernels")) or os.environ.get(INTERPRET_VARIABLE) == "1"


_PACKAGE: Final = "hybridwatch_own"


def load_own(folder: Path, name: str, place: str) -> ModuleType:
    """Load ``name.py`` from a folder, alone: it cannot import its neighbours.

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
        # Any error: unwrapped, it would not say whose code failed.
        raise ValueError(f"{place}: {name}.py cannot be loaded: {error!r}") from error
    return module
