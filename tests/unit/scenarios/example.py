"""The example of a scenario file, and files that say something else."""

from pathlib import Path
from typing import Final

from hybridwatch.scenarios.load import load_scenario
from hybridwatch.scenarios.scenario import Scenario

EXAMPLE: Final = Path(__file__).parents[2] / "golden" / "scenario" / "example.toml"
GOOD: Final = EXAMPLE.read_text(encoding="utf-8")
WAVE: Final = GOOD[GOOD.index("[[workload.waves]]") : GOOD.index("[workload.generation]")]


def write(tmp_path: Path, text: str, name: str = "smoke/x.toml") -> tuple[Path, Path]:
    """Write a file, and give it and the folder of scenarios."""
    root = tmp_path / "scenarios"
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path, root


def load(tmp_path: Path, text: str, name: str = "x") -> Scenario:
    """Load a scenario that says this."""
    return load_scenario(*write(tmp_path, text, f"{name}.toml"))
