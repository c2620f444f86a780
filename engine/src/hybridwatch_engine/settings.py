"""What the harness asks of the engine it starts: one JSON object in one environment variable.

An engine started without the variable is left exactly as released.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

VARIABLE = "HYBRIDWATCH_ENGINE"


@dataclass(frozen=True, slots=True)
class Settings:
    """Wishes for one engine.

    Attributes:
        active: Whether the variable was set at all.
        graph_replay: Replay FULL graphs on the CPU (``cpu.graph_replay``).
        fixes: Fix id to whether it shall be in; fixes not named stay as released.
    """

    active: bool = False
    graph_replay: bool = False
    fixes: Mapping[str, bool] = field(default_factory=dict)


def from_environment() -> Settings:
    """Read the settings of this process.

    Raises:
        ValueError: The variable holds something else than the JSON object described above.
    """
    text = os.environ.get(VARIABLE)
    if not text:
        return Settings()
    raw = json.loads(text)
    if not isinstance(raw, dict) or set(raw) - {"graph_replay", "fixes"}:
        raise ValueError(f"{VARIABLE}: expected an object with graph_replay and fixes, got {text}")
    return Settings(
        active=True,
        graph_replay=bool(raw.get("graph_replay", False)),
        fixes={str(fix): bool(wanted) for fix, wanted in raw.get("fixes", {}).items()},
    )
