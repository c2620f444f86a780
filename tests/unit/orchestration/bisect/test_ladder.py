"""From releases to commits: where the second list begins, and what is said if there is none."""

import pytest

from hybridwatch.engines.builds import named_build
from hybridwatch.engines.install import MARKER, environment_digest
from hybridwatch.errors import BuildError
from hybridwatch.orchestration.bisect.confirming import Confirmation
from hybridwatch.orchestration.bisect.ends import Ends, ends_of
from hybridwatch.orchestration.bisect.ladder import Ladder
from hybridwatch.orchestration.bisect.outcome import Outcome, State
from hybridwatch.orchestration.bisect.question import Wanted
from hybridwatch.orchestration.bisect.rungs import Workshop
from tests.clone import a_clone, commit, git
from tests.small_release import an_environment, make_home
from tests.unit.orchestration.bisect.made_up import BAD, MadeUpMeter, a_hunt, a_rung

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


def a_ladder(home, clone, meter, tmp_path):
    workshop = Workshop(home, clone, "tiny-1.0", False, print)
    ends = ends_of("1.0", "1.1", Wanted.REGRESSION, clone, "cpu", home)
    return Ladder(ends, workshop, a_hunt(tmp_path, meter), lambda _run: tmp_path / "record", print)


def descend(ladder, monkeypatch):
    """Search, and take the pair that is found as confirmed."""
    sure = Confirmation(holds=True, text="", labels=("", ""), record="")
    monkeypatch.setattr("hybridwatch.orchestration.bisect.ladder.confirm", lambda *_: sure)
    monkeypatch.setattr(Ladder, "_look_closer", lambda *_: None)
    return ladder.descend()


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
    ladder = a_ladder(home, clone, MadeUpMeter(bad), tmp_path)
    found = descend(ladder, monkeypatch)
    assert [one.key for one in found.answer.pair] == worker
    assert f"bisect-{shared[:10]}" in ladder.hunt.meter.asked


def test_releases_are_the_answer_where_no_commit_can_be_built(home, tmp_path, monkeypatch):
    clone = a_clone(tmp_path / "clone")
    commit(clone, "Kernel (#2)", {"csrc/a.cpp": "int b;"})
    git(clone, "tag", "v1.1")
    ladder = a_ladder(home, clone, MadeUpMeter({"tiny-1.1": BAD}), tmp_path)
    found = descend(ladder, monkeypatch)
    assert found.culprit is not None
    assert found.culprit.key == "tiny-1.1"
    (note,) = found.notes
    assert note.startswith("no commits were searched: ")
    assert "csrc/a.cpp" in note


def test_end_that_is_not_there_is_no_answer(home, tmp_path):
    gone = Outcome(state=State.NOT_HAD, reason="no such model")
    ladder = a_ladder(home, None, MadeUpMeter({"tiny-1.1": gone}), tmp_path)
    with pytest.raises(BuildError, match=r"tiny-1\.1: no such model"):
        ladder.descend()


def test_pair_that_does_not_hold_is_searched_on_and_measured_again(tmp_path, monkeypatch):
    slower = {str(at): 0.06 for at in range(11, 21)}
    said: list[str] = []
    meter = MadeUpMeter(slower=slower)
    hunt = a_hunt(tmp_path, meter, metric="tpot")
    workshop = Workshop(tmp_path, None, "tiny-1.0", False, print)
    ladder = Ladder(Ends(("0", "20")), workshop, hunt, lambda _run: tmp_path, said.append)
    again = iter(((False, (0.0,) * 20), (True, (0.06,) * 20)))

    def confirm(_hunt, _question, pair, _keep):
        assert pair[1].key == "11"
        holds, ratios = next(again)
        return Confirmation(holds, "+0.0%", ("", ""), "", ratios)

    monkeypatch.setattr("hybridwatch.orchestration.bisect.ladder.confirm", confirm)
    monkeypatch.setattr(Ladder, "_rungs", lambda *_: [a_rung(20)])
    monkeypatch.setattr(Ladder, "_look_closer", lambda *_: None)
    found = ladder.descend()
    assert found.is_confirmed
    assert next(again, None) is None
    assert any("side by side: +0.0%; the search goes on" in line for line in said)


def test_releases_between_the_ends_that_are_not_installed_are_named_first(home, tmp_path):
    file = home / "engine" / "builds.toml"
    file.write_text(file.read_text() + LATER.replace("1.1", "1.0.5"))
    ladder = a_ladder(home, None, MadeUpMeter({}), tmp_path)
    said: list[str] = []
    ladder.workshop.say = said.append
    ladder.descend()
    told = "left out, since not installed; --install installs what is needed:"
    assert said[0] == f"{told}\n  hybridwatch engine install tiny-1.0.5"
