"""What pipelines start: they call the script of the night only, and the scripts are shell."""

import os
import shutil
import subprocess

import pytest
import yaml

from hybridwatch.engines.builds import load_builds
from hybridwatch.engines.pip import TORCH_INDEX
from tests.shipped import ROOT

PIPELINES = [ROOT / ".github" / "workflows" / "nightly.yml", ROOT / ".buildkite" / "nightly.yml"]


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.parent.name)
def test_a_nightly_pipeline_calls_the_script_and_nothing_of_ours_besides(path):
    text = path.read_text()
    assert text.count("bash ci/nightly.sh") == 1
    for word in (".venv", "python -m", "make ", "asv run", "hybridwatch "):
        assert word not in text, word


def test_every_workflow_that_makes_an_engine_names_an_index_of_builds_for_cpus():
    makes = ("make engine", "make test", "bash ci/nightly.sh")
    found = [
        (path.name, step.get("env", {}).get("PIP_EXTRA_INDEX_URL"))
        for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
        for job in yaml.safe_load(path.read_text())["jobs"].values()
        for step in job["steps"]
        if step.get("run", "").startswith(makes)
    ]
    assert {name for name, _ in found} == {
        "command.yml", "nightly.yml", "pull-request.yml", "tests.yml",
    }  # fmt: skip
    assert {index for _, index in found} == {TORCH_INDEX}


@pytest.mark.parametrize("path", sorted((ROOT / "ci").glob("*.sh")), ids=lambda path: path.name)
def test_scripts_are_shell_that_stops_at_the_first_failure(path):
    subprocess.run(["bash", "-n", path], check=True)
    assert "set -euo pipefail" in path.read_text()


def test_a_second_night_that_gets_ready_is_refused(tmp_path):
    copy_scripts(tmp_path, "ci/nightly.sh", "ci/release-builds.sh", "engine/builds.toml")
    (tmp_path / ".asv").mkdir()
    lock = tmp_path / ".asv" / "nightly.lock"
    held = f"flock {lock} bash {tmp_path}/ci/nightly.sh"
    done = subprocess.run(["bash", "-c", held], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "another night is getting ready" in done.stderr


@pytest.mark.parametrize(
    ("build", "line", "called"),
    [
        ("", "", "nightly --build {newest} --baseline {newest} gpu --hours 5"),
        ("mine", "nightly", "nightly --build mine --baseline mine gpu --hours 5 --line nightly"),
    ],
)
def test_a_gpu_night_is_of_the_newest_release_or_of_a_stated_line(tmp_path, build, line, called):
    copy_scripts(tmp_path, "ci/nightly.sh", "ci/release-builds.sh", "engine/builds.toml")
    verb = tmp_path / ".venv" / "bin" / "hybridwatch"
    verb.parent.mkdir(parents=True)
    verb.write_text('#!/bin/sh\necho "$@"\n')
    verb.chmod(0o755)
    (step,) = yaml.safe_load(PIPELINES[1].read_text())["steps"]
    # Buildkite replaces "$$" by "$", and "${BUILD:-}" by what the schedule sets.
    env = os.environ | step["env"] | {"BUILD": build, "BASELINE": "", "LINE": line, "MAKE": "true"}
    command = step["command"].replace("$$", "$")
    told = subprocess.check_output(["bash", "-c", command], cwd=tmp_path, env=env, text=True)
    newest = [name for name, one in load_builds(ROOT).items() if shipped_for(one, "cuda")][-1]
    assert told.strip() == called.format(newest=newest)


def test_a_night_makes_the_environments_of_the_plain_builds(tmp_path):
    copy_scripts(tmp_path, "ci/nightly.sh")
    verb, make = tmp_path / ".venv" / "bin" / "hybridwatch", tmp_path / "make"
    verb.parent.mkdir(parents=True)
    for program in (verb, make):
        program.write_text('#!/bin/sh\necho "$@"\n')
        program.chmod(0o755)
    env = os.environ | {"BUILD": "mine@f76f626d", "BASELINE": "cpu-1.0~fix", "MAKE": str(make)}
    told = subprocess.check_output(["bash", "ci/nightly.sh"], cwd=tmp_path, env=env, text=True)
    *made, _ = told.splitlines()
    assert made == ["--silent engine BUILD=mine", "--silent engine BUILD=cpu-1.0"]


def shipped_for(build, accelerator):
    return build.accelerator == accelerator and not (build.origin or build.variant_of)


def copy_scripts(place, *files):
    for file in files:
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, place / file)


def test_the_site_is_made_by_its_script(tmp_path):
    copy_scripts(tmp_path, "ci/site.sh")
    verb = tmp_path / ".venv" / "bin" / "hybridwatch"
    verb.parent.mkdir(parents=True)
    verb.write_text('#!/bin/sh\necho "$@"\n')
    verb.chmod(0o755)
    command = ["bash", "ci/site.sh", "--base-url", "https://ada.github.io/watch/"]
    env = os.environ | {"MAKE": "true"}
    told = subprocess.check_output(command, cwd=tmp_path, env=env, text=True)
    assert told.strip() == "site public --base-url https://ada.github.io/watch/"


def test_releases_become_commits_that_are_the_same_everywhere(tmp_path):
    heads = []
    for name in ("one", "two"):
        place = tmp_path / name
        copy_scripts(place, "ci/releases.sh", "ci/release-builds.sh", "engine/builds.toml")
        subprocess.run(["bash", "ci/releases.sh", "--repository-only"], cwd=place, check=True)
        told = subprocess.check_output(
            ["git", "-C", place / ".asv" / "releases", "log", "--reverse", "--format=%H %s"],
            text=True,
        )
        heads.append(told)
    assert heads[0] == heads[1]
    shipped = [build for build in load_builds(ROOT).values() if not build.origin]
    builds = [build.name for build in shipped if build.accelerator == "cpu"]
    assert [line.split()[1] for line in heads[0].splitlines()] == builds
