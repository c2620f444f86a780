"""What the three distributions say about themselves, and who may publish them."""

import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from build.util import project_wheel_metadata

ROOT = Path(__file__).parents[2]
FOLDERS = {"hybridwatch-engine": "engine", "hybridwatch": ".", "hybridwatch-lab": "lab"}
RELEASE = ROOT / ".github" / "workflows" / "release.yml"


def read_project(folder: str) -> dict[str, str]:
    text = (ROOT / folder / "pyproject.toml").read_text(encoding="utf-8")
    project: dict[str, str] = tomllib.loads(text)["project"]
    return project


def test_one_version_that_the_changelog_has() -> None:
    projects = {name: read_project(folder) for name, folder in FOLDERS.items()}
    assert {name: project["name"] for name, project in projects.items()} == {
        name: name for name in FOLDERS
    }
    (version,) = {project["version"] for project in projects.values()}
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[:2] == ["Unreleased", version]


def find_gaps(folder: Path) -> Iterator[str]:
    """Say what an index's page of a distribution would lack."""
    found = project_wheel_metadata(folder, isolated=False)
    for key in ("Summary", "Requires-Python", "License-Expression", "License-File"):
        if not found[key]:
            yield key
    if found["Description-Content-Type"] != "text/markdown" or not found.json.get("description"):
        yield "Description"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what describes the smallest of them, its modules left out."""
    folder = tmp_path / "engine"
    (folder / "src").mkdir(parents=True)
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / "engine" / name, folder / name)
    return folder


@pytest.mark.parametrize("name", ["engine", "lab"])
def test_a_page_of_an_index_has_text_and_licence(project: Path, name: str) -> None:
    shutil.copy(ROOT / name / "pyproject.toml", project / "pyproject.toml")
    assert (ROOT / name / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert list(find_gaps(project)) == []


def test_a_page_without_text_or_licence_is_found(project: Path) -> None:
    text = (project / "pyproject.toml").read_text()
    without = re.sub(r'^readme = \{.*?"""\n.*?"text/markdown" \}\n', "", text, flags=re.M | re.S)
    assert without != text
    (project / "pyproject.toml").write_text(without)
    (project / "LICENSE").unlink()
    assert list(find_gaps(project)) == ["License-File", "Description"]


def find_dangers(text: str) -> Iterator[str]:
    """Say what a workflow that publishes must not do."""
    content = yaml.safe_load(text)
    if content["permissions"] != {} or "secrets." in text:
        yield "more rights than the jobs name, or a secret"
    for name, job in content["jobs"].items():
        uses = [step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step]
        publishes = "pypa/gh-action-pypi-publish" in uses
        if publishes != (job["permissions"] == {"id-token": "write"}):
            yield f"{name}: a job either publishes, with that right alone, or has no such right"
        if publishes and ("actions/checkout" in uses or "environment" not in job):
            yield f"{name}: runs code of the repository, or no environment guards it"
        if publishes and job["needs"] != "install":
            yield f"{name}: publishes what was not installed"


def test_only_a_job_that_runs_no_code_of_ours_may_publish() -> None:
    text = RELEASE.read_text()
    assert list(find_dangers(text)) == []
    jobs = yaml.safe_load(text)["jobs"]
    order = [
        name.replace("_", "-") for name in jobs["publish"]["strategy"]["matrix"]["distribution"]
    ]
    assert order == list(FOLDERS), "the lab asks for hybridwatch"
    assert jobs["publish"]["strategy"]["max-parallel"] == 1
    assert jobs["install"]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("permissions: {}", "permissions: write-all"),
        ("      id-token: write # trusted publishing", "      contents: write"),
        ("    needs: install\n", "    needs: build\n"),
        ("    environment: pypi-${{ matrix.distribution }}\n", ""),
        ("      contents: read # to check out", "      id-token: write"),
    ],
)
def test_a_danger_would_be_seen(old: str, new: str) -> None:
    text = RELEASE.read_text()
    assert old in text
    assert list(find_dangers(text.replace(old, new)))
