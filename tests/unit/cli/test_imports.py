"""What a verb loads, before it has work to do and while it does it: heavy imports at the edge."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

import hybridwatch
from hybridwatch.records.run import MachineState, Run
from hybridwatch.records.store import write_run
from tests.store_builders import STARTED, Plan, run

HEAVY = (
    "numpy",
    "scipy",
    "pandas",
    "pydantic",
    "rich",
    "streamlit",
    "plotly",
    "pyarrow",
    "lm_eval",
)
NOT_FOR_JUDGING = frozenset(
    {
        "scipy.stats",
        "scipy.optimize",
        "pandas",
        "streamlit",
        "plotly",
        "pyarrow",
        "jsonschema",
        "lm_eval",
        "transformers",
        "torch",
        "asv",
        "github",
        "aiohttp",
        "alembic",
    }
)
"""Each takes longer to import than a verdict takes."""


END = "\n--- the end of a call\n"
CALLS = f"""
import sys
from hybridwatch.cli.main import cli
for words in {{}}:
    try:
        cli(words, prog_name="hybridwatch")
    except SystemExit:
        pass
    print(end={END!r})
    sys.stderr.write(" ".join(sys.modules) + {END!r})
"""


def modules_of(*calls: Sequence[str], package: Path | None = None) -> list[tuple[str, set[str]]]:
    """Call verbs, one after the other, in a process of their own.

    Args:
        calls: Command lines.
        package: Folder whose ``hybridwatch`` is meant, if it is not this one.

    Returns:
        What each printed, and the modules that were loaded at its end.
    """
    environment = os.environ | ({"PYTHONPATH": str(package)} if package else {})
    code = CALLS.format([list(words) for words in calls])
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
    )
    said, loaded = done.stdout.split(END)[:-1], done.stderr.split(END)[:-1]
    return [(one, set(names.split())) for one, names in zip(said, loaded, strict=True)]


def loaded_by(*words: str) -> set[str]:
    ((said, modules),) = modules_of(words)
    assert "Usage" in said
    return {name.partition(".")[0] for name in modules}


def test_help_loads_nothing_heavy() -> None:
    assert loaded_by("--help").isdisjoint(HEAVY)


def test_the_probe_would_see_it() -> None:
    assert "scipy" in loaded_by("compare", "--help")


def test_a_check_loads_statistics_for_two_servers_only() -> None:
    loaded = loaded_by("check", "--help")
    assert loaded.isdisjoint({"numpy", "scipy", "pandas", "sqlalchemy", "psutil", "lm_eval"})


@pytest.mark.parametrize("verb", ["ingest", "export"])
def test_moving_files_needs_no_statistics(verb) -> None:
    assert {"scipy", "pandas", "streamlit", "pyarrow"}.isdisjoint(loaded_by(verb, "--help"))


def measured(seed: int, day: int) -> Run:
    """A run with everything that a report can be about: answers, times and what was around them."""
    made = run(Plan(seed=seed, started_at=STARTED + timedelta(days=day), accuracy=(0.97, 0.9)))
    return replace(
        made,
        trials=tuple(
            replace(trial, surroundings=MachineState(0.008, 0.009 + 0.001 * at, 0.1, 3e9))
            for at, trial in enumerate(made.trials)
        ),
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Give a store in which two runs have a history, and their words on the command line."""
    runs = [measured(seed, day=seed) for seed in range(11)]
    folder = tmp_path_factory.mktemp("results")
    for one in runs:
        write_run(folder, one)
    return folder, (f"{runs[-2].id}#0", f"{runs[-1].id}#1"), runs[-1].id


@pytest.mark.parametrize("verb", ["compare", "gate", "comment"])
def test_judging_loads_no_statistics_that_it_can_do_without(results, verb) -> None:
    folder, pair, alone = results
    rest = ("--results", str(folder), *(("--dry-run",) if verb == "comment" else ()))
    # The sides of one run need no database; those of two ask which runs are like them.
    calls = modules_of((verb, alone, *rest), (verb, *pair, *rest))
    for (said, modules), asks_database in zip(calls, (False, True), strict=True):
        assert ("judged" if verb == "gate" else "quivalent") in said
        assert "hybridwatch.analysis.rank" in modules
        assert modules.isdisjoint(NOT_FOR_JUDGING)
        assert ("sqlalchemy" in modules) is asks_database


def test_an_import_that_crept_in_is_seen(results, tmp_path) -> None:
    folder, pair, _ = results
    package = tmp_path / "src"
    home = Path(hybridwatch.__file__).parent
    shutil.copytree(home, package / "hybridwatch")  # with what is compiled already
    rule = package / "hybridwatch" / "analysis" / "rank.py"
    planted = "    from scipy import stats\n\n    del stats\n    n = len(values)\n"
    rule.write_text(rule.read_text().replace("    n = len(values)\n", planted, 1))
    ((_, modules),) = modules_of(("compare", *pair, "--results", str(folder)), package=package)
    assert modules & NOT_FOR_JUDGING == {"scipy.stats", "scipy.optimize"}
