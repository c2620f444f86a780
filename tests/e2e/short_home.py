"""Checkouts with one short scenario: at its timed load as soon as can be, or over soon."""

import re
import subprocess
import sys
from pathlib import Path

from hybridwatch.engines.builds import load_builds
from hybridwatch.engines.install import MARKER, environment_digest
from hybridwatch.scenarios.load import load_scenario
from tests.engine.conftest import BUILD

ROOT = Path(__file__).parents[2]
SCENARIO = "smoke/padded-graph-rows"

_PRETENDED = f"""#!/bin/sh
while [ "$1" != -m ]; do shift; done
case "$2" in
  *.serve) part=serve;;
  *.load_client) part=client;;
esac
shift 2
exec {sys.executable} {Path(__file__).with_name("pretended_engine.py")} $part "$@"
"""


def make_short_home(home: Path, *, pretended: bool = False) -> Path:
    """Make a checkout whose scenario has its timed load and next to nothing else."""
    _link_what_every_home_has(home, pretended=pretended)
    text = re.sub(r"\[accuracy\].*", "", _shipped(SCENARIO), flags=re.DOTALL)
    trials = "[trials]\ncontract = 0\nperformance = 100\nhost_sync = 1\n[expect]\n"
    _write_scenario(home, SCENARIO, text + trials)
    return home


def make_home_of_a_short_night(
    home: Path, scenario: str, *, trials: int, pretended: bool = False
) -> Path:
    """Make a checkout whose scenario has all its phases, and each with few trials that are short.

    Args:
        home: A folder, to be made.
        scenario: Its id.
        trials: How many are timed.
        pretended: Whether the engine is ``pretended_engine``, which knows timed loads alone.
    """
    _link_what_every_home_has(home, pretended=pretended)
    text = _shipped(scenario)
    contract = 0 if pretended else 1
    fewer = f"[trials]\ncontract = {contract}\nperformance = {trials}\nhost_sync = 1\n\n"
    documents = (r"(?m)^documents = .*", "documents = 10")
    for declared, short in (
        (r"\[trials\][^\[]*", fewer),
        (r"(?s)\[accuracy\].*?(?=\[trials\])", "") if pretended else documents,
        (r"(?m)^prompts = .*", "prompts = 4"),
        *([(r"(?s)\[expect\..*", "[expect]\n")] if pretended else []),
    ):
        text, found = re.subn(declared, short, text)
        assert found == 1, declared
    _write_scenario(home, scenario, text)
    # asv keeps its numbers by commit.
    git = ("git", "-C", str(home), "-c", "user.name=night", "-c", "user.email=night@example.org")
    subprocess.run([*git, "init", "--quiet", "--initial-branch=main"], check=True)
    subprocess.run([*git, "add", "scenarios"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message=One short scenario"], check=True)
    return home


def _link_what_every_home_has(home: Path, *, pretended: bool) -> None:
    environment = home / ".engines" / BUILD
    environment.mkdir(parents=True)
    for name in ("engine", "models", "oracles"):
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


def _shipped(scenario: str) -> str:
    return (ROOT / "scenarios" / f"{scenario}.toml").read_text(encoding="utf-8")


def _write_scenario(home: Path, scenario: str, text: str) -> None:
    file = home / "scenarios" / f"{scenario}.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    load_scenario(file, home / "scenarios")
