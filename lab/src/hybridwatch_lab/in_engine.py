"""Where the modules lie that run in an engine's environment, which has the engine's plugin."""

import os
from pathlib import Path
from typing import Final

PATH: Final = Path(__file__).with_name("engine").resolve()
"""Goes onto the path of that environment's Python; nothing of ours is in it."""

MUTANTS: Final = PATH / "hybridwatch_engine_lab" / "mutants"
"""Tables of mutants, and the code that they name."""

SETTINGS: Final[dict[str, list[str]]] = {"mutants": [str(MUTANTS)]}
"""The plugin's settings for an engine with mutants."""


def variables() -> dict[str, str]:
    """Give what an engine's Python needs in its environment to find the modules."""
    inherited = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(PATH), *([inherited] if inherited else [])])}
