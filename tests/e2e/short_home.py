"""A checkout with one short scenario, whose session is at its timed load as soon as it can be."""

import re
import sys
from pathlib import Path

from hybridwatch.engine.builds import load_builds
from hybridwatch.engine.install import MARKER, environment_digest
from hybridwatch.scenario.load import load_scenario
from tests.engine.conftest import BUILD

ROOT = Path(__file__).parents[2]
SCENARIO = "smoke/padded-graph-rows"

_PRETENDED = f"""#!/bin/sh
case "$2" in
  *.serve) part=serve;;
  *.load_client) part=client;;
esac
shift 2
exec {sys.executable} {Path(__file__).with_name("pretended_engine.py")} $part "$@"
"""


def make_short_home(home: Path, *, pretended: bool = False) -> Path:
    """Link what every home has; the scenario keeps its timed load and next to nothing else.

    Args:
        home: A folder, to be made.
        pretended: Whether the engine is ``pretended_engine`` instead of the build's.
    """
    environment = home / ".engines" / BUILD
    environment.mkdir(parents=True)
    for name in ("engine", "models"):
        (home / name).symlink_to(ROOT / name)
    if pretended:
        (environment / "bin").mkdir()
        (environment / "bin" / "python").write_text(_PRETENDED, encoding="utf-8")
        (environment / "bin" / "python").chmod(0o755)
    else:
        for part in (ROOT / ".engines" / BUILD).iterdir():
            if part.name != MARKER:
                (environment / part.name).symlink_to(part)
    # The mark tells whose environment it is, and this home is another one.
    (environment / MARKER).write_text(environment_digest(load_builds(home)[BUILD]) + "\n")
    _write_scenario(home)
    return home


def _write_scenario(home: Path) -> None:
    whole = (ROOT / "scenarios" / f"{SCENARIO}.toml").read_text(encoding="utf-8")
    short = re.sub(r"\[accuracy\].*", "", whole, flags=re.DOTALL)
    short += "[trials]\ncontract = 0\nperformance = 100\nhost_sync = 1\n[expect]\n"
    file = home / "scenarios" / f"{SCENARIO}.toml"
    file.parent.mkdir(parents=True)
    file.write_text(short, encoding="utf-8")
    load_scenario(file, home / "scenarios")
