"""The scripts and workflows of the two halves, the untrusted and the trusted."""

import ast
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from hybridwatch.engines.builds import load_builds
from hybridwatch.records.store import write_run
from tests.builders import RECENT, Trials, a_comparison
from tests.github.hub import EARLIER, HEAD, NUMBER, REPOSITORY, TOKEN, Hub
from tests.mistakes import read_mistakes
from tests.waiting import LIMIT_S

ROOT: Final = Path(__file__).parents[2]
PADDED: Final = "contract.padded_rows_prefilling"
GOOD: Final[dict[str, Trials]] = {PADDED: (0.0,)}
BAD: Final[dict[str, Trials]] = {PADDED: (4.0,)}
ZIZMOR: Final = (
    Path(sys.executable).with_name("zizmor"), "--offline", "--no-progress", "--color=never",
    "--persona", "pedantic",
)  # fmt: skip

Script = Callable[..., "subprocess.CompletedProcess[str]"]

# The command line client as ci/comment.sh calls it: a list of bundles, and a bundle.
GH: Final = """#!/usr/bin/env bash
case "$2" in
    */actions/runs/42/artifacts\\?name=hybridwatch) echo 99 ;;
    */actions/artifacts/99/zip) cat "$BUNDLE" ;;
esac
"""


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Run a script of ci/ with nothing but what its workflow gives it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "gh").write_text(GH)
    (folder / "gh").chmod(0o755)

    def run(hub: Hub, name: str, **given: str) -> "subprocess.CompletedProcess[str]":
        inherited = {key: os.environ[key] for key in ("HOME", "PATH") if key in os.environ}
        environment = {
            **inherited,
            "PATH": f"{folder}:{inherited['PATH']}",
            "GITHUB_API_URL": hub.base,
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_TOKEN": TOKEN,
            "TMPDIR": str(tmp_path),
        }
        done = called(ROOT / "ci" / name, env=environment | given)
        assert TOKEN not in done.stdout + done.stderr
        assert not list(tmp_path.glob("tmp.*")), "it cleans up"
        return done

    return run


def called(
    *words: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        words, env=env, cwd=cwd, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )


@pytest.fixture
def trusted(hub: Hub, script: Script) -> Script:
    """Run ci/comment.sh on a bundle."""

    def run(bundle: Path, **changes: str) -> "subprocess.CompletedProcess[str]":
        given = {"HEAD": HEAD, "BUNDLE": str(bundle), "RUN": "42"}
        return script(hub, "comment.sh", **given | changes)

    return run


def bundle_of(folder: Path, number: int = NUMBER) -> Path:
    """Pack a results folder as the workflow uploads it."""
    path = folder.with_suffix(".zip")
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("pull-request.txt", f"{number}\n")
        for file in (folder / "records").rglob("*"):
            packed.write(file, file.relative_to(folder).as_posix())
    return path


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    write_run(tmp_path / "bundle", a_comparison(GOOD, BAD, started_at=RECENT))
    return tmp_path / "bundle"


def test_the_trusted_half_posts_what_the_untrusted_measured(hub, trusted, measured) -> None:
    done = trusted(bundle_of(measured))
    assert done.returncode == 0, done.stderr
    (body,) = hub.bodies()
    assert "A contract broke in " in body.split("\n")[0]
    assert "smoke/answer-ends: not judged: missing" in body, "ci/gate.toml expects all of smoke"
    assert [check["conclusion"] for check in hub.checks] == ["failure"]


def test_a_bundle_cannot_choose_its_pull_request(hub, trusted, measured) -> None:
    done = trusted(bundle_of(measured), HEAD="c" * 40)
    assert done.returncode == 2
    assert "does not belong to this pull request" in done.stderr
    assert trusted(bundle_of(measured, number=8)).returncode == 2
    assert trusted(bundle_of(measured), HEAD=EARLIER).returncode == 0
    assert (hub.comments, hub.checks) == ([], [])


def test_a_bundle_with_anything_else_in_it_is_refused(hub, trusted, measured) -> None:
    path = bundle_of(measured)
    with zipfile.ZipFile(path, "a") as packed:
        packed.writestr("../../.venv/bin/hybridwatch", "#!/bin/sh\n")
    done = trusted(path)
    assert done.returncode != 0
    assert "expected nothing but records" in done.stderr
    assert hub.requests == []


def test_no_bundle_is_not_green(hub, trusted, measured) -> None:
    done = trusted(bundle_of(measured), RUN="43")
    assert done.returncode == 1
    assert "nothing was measured" in done.stderr
    assert hub.requests == []


MEASURE: Final = """#!{python}
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from hybridwatch.engines.builds import load_builds
from hybridwatch.records.store import write_run
from tests.builders import RECENT, a_comparison
said = Path("said.txt")
said.write_text((said.read_text() if said.exists() else "") + repr(sys.argv[1:]) + "\\n")
if sys.argv[1] in ("run", "try", "bisect"):
    write_run(Path("bundle"), a_comparison({good!r}, {bad!r}, started_at=RECENT))
    (Path("bundle") / "verdicts").mkdir()
    print("{{}}")
    sys.exit({status})
"""


def copy_scripts(folder: Path, status: int) -> Path:
    """Copy scripts, and what they ask for the newest build, as they lie in a checkout.

    The engine is a script that stores a record, and notes with which words it was called.
    """
    for name in ("pull-request.sh", "measure-command.sh", "release-builds.sh"):
        (folder / "ci").mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "ci" / name, folder / "ci")
    (folder / "engine").mkdir()
    shutil.copy(ROOT / "engine" / "builds.toml", folder / "engine")
    verb = folder / ".venv" / "bin" / "hybridwatch"
    verb.parent.mkdir(parents=True)
    facts = {"python": sys.executable, "root": str(ROOT), "good": GOOD, "bad": BAD}
    verb.write_text(MEASURE.format(status=status, **facts))
    verb.chmod(0o755)
    return folder / "ci"


def said_in(folder: Path) -> list[list[str]]:
    """Give the words of each call."""
    lines = (folder / "said.txt").read_text().splitlines()
    return [ast.literal_eval(line) for line in lines]


@pytest.mark.parametrize(
    ("status", "actions", "gates"),
    [
        (0, "", ["gate --results bundle"]),
        (1, "true", ["gate --results bundle --github"]),
        (2, "true", []),
    ],
)
def test_the_untrusted_half_leaves_a_bundle(tmp_path, status, actions, gates) -> None:
    scripts = copy_scripts(tmp_path, status)
    wanted = {"PULL_REQUEST": "7", "CONTENDER": "cpu-0.27.1+x", "SCENARIOS": "smoke a/b"}
    wanted |= {"GITHUB_ACTIONS": actions}
    done = called(scripts / "pull-request.sh", env=os.environ | wanted)
    assert done.returncode == (0 if gates else 1), done.stderr
    assert (tmp_path / "bundle" / "pull-request.txt").read_text() == "7\n"
    assert len(list((tmp_path / "bundle" / "records").rglob("*.json"))) == 1
    run, *rest = map(" ".join, said_in(tmp_path))
    newest = [name for name in load_builds(ROOT) if name.startswith("cpu-")][-1]
    assert run == (
        f"run smoke a/b --build {newest} --build cpu-0.27.1+x --line pr-7 --profile "
        "--results bundle"
    )
    assert rest == gates


def test_the_recipe_for_a_fork_measures_its_checkout(tmp_path) -> None:
    """What docs/ci.md says, in a fork's workspace with a copy as above beside its code."""
    page = (ROOT / "docs" / "ci.md").read_text()
    recipe = page.partition("   ```yaml\n   - run: ")[2].partition("   ```")[0]
    assert len(recipe.splitlines()) == 3
    (line,) = [line for line in recipe.splitlines() if "pull-request.sh" in line]
    copy_scripts(tmp_path / "hybridwatch", 1)
    wanted = {"PULL_REQUEST": "7", "GITHUB_ACTIONS": ""}
    words = ["bash", "-c", line.partition("run: ")[2]]
    done = called(*words, env=os.environ | wanted, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = [*map(" ".join, said_in(tmp_path / "hybridwatch"))]
    assert said == [f"try {tmp_path} smoke --line pr-7 --results bundle", "gate --results bundle"]


WORKFLOWS: Final = ROOT / ".github" / "workflows"


def test_no_workflow_is_unsafe() -> None:
    done = called(*ZIZMOR, WORKFLOWS)
    assert done.returncode == 0, done.stdout
    assert "2 ignored" in done.stdout, "events, each with its reason beside it"


CREDENTIALS: Final = "        with:\n          persist-credentials: false\n"


@pytest.mark.parametrize(
    ("name", "old", "new", "finding"), read_mistakes("workflows", credentials=CREDENTIALS)
)
def test_an_unsafe_workflow_would_be_seen(tmp_path, name, old, new, finding) -> None:
    """Planted, one at a time."""
    text = (WORKFLOWS / f"{name}.yml").read_text()
    assert old in text
    (tmp_path / "planted.yml").write_text(text.replace(old, new))
    done = called(*ZIZMOR, tmp_path / "planted.yml")
    assert done.returncode != 0
    assert finding in done.stdout


def test_the_untrusted_half_has_no_secret_and_writes_nothing() -> None:
    names = ("pull-request.yml", "comment.yml")
    untrusted, trusted = ((WORKFLOWS / name).read_text() for name in names)
    assert "on: pull_request\n" in untrusted
    assert "pull_request_target" not in untrusted + trusted
    assert "secrets." not in untrusted
    assert "token" not in untrusted
    assert "write" not in untrusted.replace("no write permission", "")
    assert "ref:" not in trusted, "the default branch is what it checks out"
