"""From releases to commits: where the second list begins, and what is said if there is none."""

import pytest

from hybridwatch.engines.builds import named_build
from hybridwatch.engines.install import MARKER, environment_digest
from hybridwatch.errors import BuildError
from hybridwatch.orchestration.bisect.bisector import Bisector, Confirmation
from hybridwatch.orchestration.bisect.candidates import BuildFactory, Ends, find_ends
from hybridwatch.orchestration.bisect.question import ChangeDirection, ProbeOutcome, ProbeState
from tests.checkout import a_clone, an_environment, commit, git, make_home
from tests.unit.orchestration.bisect.made_up import BAD, MadeUpMeter, a_bisect_search, a_list

LATER = """
[builds."tiny-1.1"]
like = "tiny-1.0"
release = "1.1"
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Two installed releases."""
    root = make_home(tmp_path / "home")
    file = root / "engine" / "builds.toml"
    file.write_text(file.read_text() + LATER)
    build = named_build("tiny-1.1", root)
    an_environment(build.environment)
    (build.environment / MARKER).write_text(environment_digest(build) + "\n")
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(root))
    return root


def a_ladder(home, clone, measurer, tmp_path):
    factory = BuildFactory(home, clone, "tiny-1.0", False, print)
    ends = find_ends("1.0", "1.1", ChangeDirection.REGRESSION, clone, "cpu", home)
    return Bisector(
        ends, factory, a_bisect_search(tmp_path, measurer), lambda _run: tmp_path / "record", print
    )


def run(bisector, monkeypatch):
    """Search, and take the pair that is found as confirmed."""
    sure = Confirmation(holds=True, text="", labels=("", ""), record="")
    monkeypatch.setattr(Bisector, "_measured_again", lambda *_: sure)
    monkeypatch.setattr(Bisector, "_look_closer", lambda *_: None)
    return bisector.run()


def test_commits_between_two_releases_begin_where_the_earlier_ones_branch_parted(
    home, tmp_path, monkeypatch
):
    clone = a_clone(tmp_path / "clone")
    git(clone, "tag", "-d", "v1.0")
    shared = git(clone, "rev-parse", "HEAD").strip()
    git(clone, "checkout", "-q", "-b", "branch")
    commit(clone, "Only in 1.0", {"vllm/v1/a.py": "a = 1\n"})
    git(clone, "tag", "v1.0")
    git(clone, "checkout", "-q", "-")
    worker = [commit(clone, f"{n} (#{n})", {"vllm/v1/worker.py": f"rows = {n}\n"}) for n in (2, 3)]
    git(clone, "tag", "v1.1")
    bad = {"tiny-1.1": BAD, f"bisect-{worker[1][:10]}": BAD}
    bisector = a_ladder(home, clone, MadeUpMeter(bad), tmp_path)
    found = run(bisector, monkeypatch)
    assert [one.key for one in found.answer.pair] == worker
    assert f"bisect-{shared[:10]}" in bisector.search.measurer.asked


def test_releases_are_the_answer_where_no_commit_can_be_built(home, tmp_path, monkeypatch):
    clone = a_clone(tmp_path / "clone")
    commit(clone, "Kernel (#2)", {"csrc/a.cpp": "int b;"})
    git(clone, "tag", "v1.1")
    bisector = a_ladder(home, clone, MadeUpMeter({"tiny-1.1": BAD}), tmp_path)
    found = run(bisector, monkeypatch)
    assert found.culprit is not None
    assert found.culprit.key == "tiny-1.1"
    (note,) = found.notes
    assert note.startswith("no commits were searched: ")
    assert "csrc/a.cpp" in note


def test_end_that_is_not_there_is_no_answer(home, tmp_path):
    gone = ProbeOutcome(state=ProbeState.NOT_HAD, reason="no such model")
    bisector = a_ladder(home, None, MadeUpMeter({"tiny-1.1": gone}), tmp_path)
    with pytest.raises(BuildError, match=r"tiny-1\.1: no such model"):
        bisector.run()


def test_pair_that_does_not_hold_is_searched_on_and_measured_again(tmp_path, monkeypatch):
    slower = {str(at): 0.06 for at in range(11, 21)}
    said: list[str] = []
    measurer = MadeUpMeter(slower=slower)
    search = a_bisect_search(tmp_path, measurer, metric="tpot")
    factory = BuildFactory(tmp_path, None, "tiny-1.0", False, print)
    bisector = Bisector(Ends(("0", "20")), factory, search, lambda _run: tmp_path, said.append)
    again = iter(((False, (0.0,) * 20), (True, (0.06,) * 20)))

    def measured_again(_self, _question, pair):
        assert pair[1].key == "11"
        holds, ratios = next(again)
        return Confirmation(holds, "+0.0%", ("", ""), "", ratios)

    monkeypatch.setattr(Bisector, "_measured_again", measured_again)
    monkeypatch.setattr(Bisector, "_lists", lambda *_: [a_list(20)])
    monkeypatch.setattr(Bisector, "_look_closer", lambda *_: None)
    found = bisector.run()
    assert found.is_confirmed
    assert next(again, None) is None
    assert any("side by side: +0.0%; the search goes on" in line for line in said)


def test_releases_between_the_ends_that_are_not_installed_are_named_first(home, tmp_path):
    file = home / "engine" / "builds.toml"
    file.write_text(file.read_text() + LATER.replace("1.1", "1.0.5"))
    bisector = a_ladder(home, None, MadeUpMeter({}), tmp_path)
    said: list[str] = []
    bisector.factory.say = said.append
    bisector.run()
    told = "left out, since not installed; --install installs what is needed:"
    assert said[0] == f"{told}\n  hybridwatch engine install tiny-1.0.5"
