"""Results of asv, ingested and exported again: asv itself says the same of both folders."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from asv.results import iter_results

from tests.asv_files import (
    DAY_MS,
    FIRST_DAY_MS,
    NAN,
    describe,
    row,
    write_benchmarks,
    write_results,
)
from tests.builders import noisy
from tests.command_line import run_verb

FIXTURES = Path(__file__).parents[3] / "fixtures" / "foreign"
ONE_TWO = [["1", "2"], ["'a(b'", "<function f>"]]
INF = float("inf")


def git(folder: Path, *words: str, day: int = 0) -> str:
    at = f"{(FIRST_DAY_MS + day * DAY_MS) // 1000} +0000"
    facts = {"NAME": "n", "EMAIL": "n@example.org", "DATE": at}
    who = {f"GIT_{role}_{key}": facts[key] for role in ("AUTHOR", "COMMITTER") for key in facts}
    done = subprocess.run(
        ["git", *words], cwd=folder, check=True, capture_output=True, text=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), **who},
    )  # fmt: skip
    return done.stdout.strip()


def result(day: int) -> dict[str, Any]:
    """Benchmarks of every kind; times grow from day to day."""
    center = 0.01 + day * 0.002
    times = [noisy(center, 5, 0.001, seed=day), None, None, noisy(2 * center, 5, 0.001, seed=day)]
    stats = ([-INF, None, None, 0.1], [INF, None, None, 0.2], *[[0.1, None, None, 0.1]] * 2)
    return {
        "s.C.time_grid": row(
            *(center, NAN, None, 2 * center),
            params=ONE_TWO, samples=times, day=day,
            stats=(*stats, [1, None, None, 1], [5, None, None, 5]),
        ),
        "s.C.peakmem_b": row(1_000_000 + day, day=day),
        "s.track_ms": row(12.5 + day, day=day),
        "s.track_requests": row(50.0 + day, day=day),
        "s.time_skipped": row(NAN, NAN, params=[["1", "2"]], day=day),
        "s.time_failed": row(None, day=day),
        "s.time_gone": row(0.5, day=day),
    }  # fmt: skip


@pytest.fixture
def project(tmp_path) -> tuple[Path, list[str]]:
    """Give a project with results of three commits in ``before``, and the commits."""
    root = tmp_path / "project"
    (root / "benchmarks").mkdir(parents=True)
    git(root, "init", "-q")
    commits = []
    for day in range(3):
        git(root, "commit", "-q", "--allow-empty", "-m", f"day {day}", day=day)
        commits.append(git(root, "rev-parse", "HEAD"))
        write_results(root / "before", result(day), commit=commits[-1], day=day)
    write_benchmarks(
        root / "before",
        describe("s.C.time_grid", "seconds", "time", params=ONE_TWO, param_names=["n", "f"]),
        describe("s.C.peakmem_b", "bytes", "peakmemory"),
        describe("s.track_ms", "ms"),
        describe("s.track_requests", "req/s"),
        describe("s.time_skipped", "seconds", "time", params=[["1", "2"]], param_names=["n"]),
        describe("s.time_failed", "seconds", "time"),
    )
    for name in ("before", "after"):
        told = {"version": 1, "project": "p", "repo": ".", "branches": ["HEAD"]}
        folders = {"results_dir": name, "html_dir": f"html-{name}", "benchmark_dir": "benchmarks"}
        (root / f"{name}.json").write_text(
            json.dumps({**told, **folders, "environment_type": "existing"})
        )
    return root, commits


def round_trip(root: Path, before: Path) -> None:
    store = ["--results", str(root / "store")]
    run_verb("ingest", before, *store, status=0)
    run_verb("export", "--to", "asv", "--out", root / "after", *store, status=0)


def files(folder: Path) -> dict[str, Any]:
    # As text: NaN is not equal to itself.
    return {
        path.relative_to(folder).as_posix(): json.dumps(
            json.loads(path.read_text()), sort_keys=True
        )
        for path in folder.rglob("*.json")
    }


def test_asv_says_the_same_of_what_went_in_and_came_out(project) -> None:
    root, commits = project
    round_trip(root, root / "before")
    assert files(root / "after") == files(root / "before")

    def asv(name: str, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "asv", "--config", f"{name}.json", *words],
            cwd=root, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    for words in (
        ("publish",),
        ("compare", "--machine", "bench-1", commits[0], commits[2]),
        ("show", "--machine", "bench-1", "--details", commits[2]),
    ):
        shown = [sorted(asv(name, *words).splitlines()) for name in ("before", "after")]
        assert shown[0] == shown[1]
        assert shown[0]
    pages = [files(root / f"html-{name}") for name in ("before", "after")]
    for page in pages:
        del page["info.json"]
        page["regressions.json"] = sorted(json.loads(page["regressions.json"])["regressions"])
    assert "s.C.time_grid(1, 'a(b')" in str(pages[0]["regressions.json"])
    assert pages[0] == pages[1]


def test_what_asv_itself_wrote_comes_out_as_it_went_in(tmp_path) -> None:
    round_trip(tmp_path, FIXTURES / "asv")
    assert files(tmp_path / "after") == files(FIXTURES / "asv")


def test_results_of_asv_1_come_out_in_version_2(tmp_path) -> None:
    round_trip(tmp_path, FIXTURES / "made-up" / "asv")
    name = "suite.time_params"
    (found,) = (
        one for one in iter_results(str(tmp_path / "after")) if name in one.get_all_result_keys()
    )
    assert found.get_result_value(name, [["1", "2"]]) == [0.5, None]
    assert found.env_name == "py2.7-Cython-numpy1.8"


def test_what_is_there_already_stays(tmp_path) -> None:
    write_results(tmp_path / "after", {"s.time_old": row(1.0)})
    write_results(tmp_path / "before", {"s.time_new": row(2.0)})
    round_trip(tmp_path, tmp_path / "before")
    (path,) = (tmp_path / "after" / "bench-1").glob("aaaaaaaa-*.json")
    assert set(json.loads(path.read_text())["results"]) == {"s.time_old", "s.time_new"}


def test_no_name_in_a_file_leads_out_of_the_folder(tmp_path) -> None:
    path = write_results(tmp_path / "before", {"s.time_x": row(1.0)})
    told = json.loads(path.read_text())
    told |= {"commit_hash": "../../../x", "env_name": "../../../y"}
    told["params"]["machine"] = "../../../z"
    path.write_text(json.dumps(told))
    (path.parent / "machine.json").unlink()
    round_trip(tmp_path, tmp_path / "before")
    made = {found.relative_to(tmp_path).parts[0] for found in tmp_path.rglob("*.json")}
    assert made == {"after", "before", "store"}
