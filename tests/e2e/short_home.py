"""A checkout with one short scenario, whose session is at its timed load twenty seconds on."""

import re
from pathlib import Path

from hybridwatch.engine.builds import load_builds
from hybridwatch.engine.install import MARKER, environment_digest
from hybridwatch.scenario.load import load_scenario
from tests.engine.conftest import BUILD

ROOT = Path(__file__).parents[2]
SCENARIO = "smoke/padded-graph-rows"


def make_short_home(home: Path) -> Path:
    """Link what every home has; the scenario keeps its timed load and next to nothing else."""
    environment = home / ".engines" / BUILD
    environment.mkdir(parents=True)
    for name in ("engine", "models"):
        (home / name).symlink_to(ROOT / name)
    for part in (ROOT / ".engines" / BUILD).iterdir():
        if part.name != MARKER:
            (environment / part.name).symlink_to(part)
    # The mark tells whose environment it is, and this home is another one.
    (environment / MARKER).write_text(environment_digest(load_builds(home)[BUILD]) + "\n")
    whole = (ROOT / "scenarios" / f"{SCENARIO}.toml").read_text(encoding="utf-8")
    short = re.sub(r"\[accuracy\].*", "", whole, flags=re.DOTALL)
    short += "[trials]\ncontract = 0\nperformance = 100\nhost_sync = 1\n[expect]\n"
    file = home / "scenarios" / f"{SCENARIO}.toml"
    file.parent.mkdir(parents=True)
    file.write_text(short, encoding="utf-8")
    load_scenario(file, home / "scenarios")
    return home
