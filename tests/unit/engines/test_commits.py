"""Commits of a clone, and builds of one of them."""

import pytest
from click.testing import CliRunner

from hybridwatch.cli.engine import command
from hybridwatch.engines.builds import load_builds, named_build
from hybridwatch.engines.check import check_build
from hybridwatch.engines.commits import commit_tree, commits_between, find_sha, python_changes
from hybridwatch.engines.install import InstallState, state
from hybridwatch.engines.own_builds import add_source, remove_build
from hybridwatch.errors import BuildError
from tests.checkout import a_clone, commit, git, make_home, write


@pytest.fixture
def clone(tmp_path):
    """A clone with the release's tag and three commits after it, one of documentation alone."""
    folder = a_clone(tmp_path / "clone")
    commit(folder, "Two rows (#17)", {"vllm/v1/worker.py": "rows = 2\n"})
    commit(folder, "Describe rows", {"docs/rows.md": "rows\n"})
    commit(folder, "Three rows", {"vllm/v1/worker.py": "rows = 3\n"})
    return folder


def test_commits_that_reach_no_engine_are_left_out(clone):
    found = commits_between(clone, find_sha(clone, "v1.0"), find_sha(clone, "HEAD"))
    assert [one.title for one in found] == ["Two rows (#17)", "Three rows"]
    assert [one.pull_request for one in found] == [17, None]
    assert [one.paths for one in found] == [("vllm/v1/worker.py",)] * 2
    assert found[0].author == "a"
    assert found[-1].sha == find_sha(clone, "HEAD")


def test_pull_request_that_is_merged_is_one_commit(clone):
    git(clone, "checkout", "-q", "-b", "side", "v1.0")
    commit(clone, "Half of it", {"vllm/v1/side.py": "side = 1\n"})
    git(clone, "checkout", "-q", "-")
    git(clone, "merge", "-q", "--no-ff", "-m", "Merge side (#18)", "side")
    found = commits_between(clone, find_sha(clone, "v1.0"), find_sha(clone, "HEAD"))
    assert [one.title for one in found][-1] == "Merge side (#18)"
    assert found[-1].paths == ("vllm/v1/side.py",)
    assert len(found) == 3


def test_ends_that_parted_are_refused_with_the_place(clone):
    git(clone, "checkout", "-q", "-b", "release", "v1.0")
    commit(clone, "On the branch", {"vllm/v1/side.py": "side = 1\n"})
    base = find_sha(clone, "v1.0")
    with pytest.raises(BuildError, match=f"they part at {base[:12]}"):
        commits_between(clone, find_sha(clone, "release"), find_sha(clone, "@{-1}"))


def test_unknown_commit_and_folder_without_a_repository_are_refused(clone, tmp_path):
    with pytest.raises(BuildError, match="found none 'nowhere'"):
        find_sha(clone, "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BuildError, match="not a git repository"):
        find_sha(tmp_path / "empty", "HEAD")


def test_python_changes_are_the_later_ones_files(clone):
    changes = python_changes(clone, find_sha(clone, "v1.0"), find_sha(clone, "HEAD"))
    assert changes == {"vllm/v1/worker.py": "rows = 3\n"}


def test_tree_of_a_commit_leaves_the_clone_as_it_was(clone):
    write(clone, {"vllm/v1/worker.py": "rows = 4\n"})
    before = git(clone, "status", "--porcelain"), git(clone, "worktree", "list")
    with commit_tree(clone, "HEAD~2") as tree:
        assert (tree / "vllm/v1/worker.py").read_text() == "rows = 2\n"
    assert not tree.exists()
    assert (git(clone, "status", "--porcelain"), git(clone, "worktree", "list")) == before
    assert (clone / "vllm/v1/worker.py").read_text() == "rows = 4\n"


def test_build_of_a_commit_knows_it_and_how_it_is_made_again(clone, tmp_path):
    home, sha = make_home(tmp_path / "home"), find_sha(clone, "HEAD~2")
    write(clone, {"vllm/v1/worker.py": "rows = 4\n"})
    build = add_source(home, "earlier", clone, commit=sha)
    found = check_build(build)
    assert (found.revision, found.diff_digest) == (sha, None)
    assert found.changed_files == ["v1/worker.py"]
    assert build.made_by == (
        f"hybridwatch engine add earlier --source {clone} --commit {sha} --base tiny-1.0"
    )
    assert state(named_build("earlier", home)) is InstallState.INSTALLED


def test_build_that_is_removed_leaves_the_others(clone, tmp_path):
    home = make_home(tmp_path / "home")
    first, second = (add_source(home, name, clone) for name in ("first", "second"))
    remove_build(home, "first")
    remove_build(home, "nobody")
    assert not first.environment.exists()
    assert state(named_build("second", home)) is InstallState.INSTALLED
    assert second.environment.exists()
    with pytest.raises(BuildError, match="first"):
        named_build("first", home)
    remove_build(home, "second")
    assert list(load_builds(home)) == ["tiny-1.0"]


def test_release_cannot_be_removed(tmp_path):
    home = make_home(tmp_path / "home")
    remove_build(home, "tiny-1.0")
    assert state(named_build("tiny-1.0", home)) is InstallState.INSTALLED


def test_verb_takes_a_commit_of_a_source(clone, tmp_path, monkeypatch):
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(make_home(tmp_path / "home")))
    add = ["add", "earlier", "--commit", "HEAD~2"]
    done = CliRunner().invoke(command, [*add, "--source", str(clone)])
    assert done.exit_code == 0, done.output
    assert f"commit {find_sha(clone, 'HEAD~2')[:12]}, no changes" in done.output
    done = CliRunner().invoke(command, [*add, "--release", "1.0"])
    assert done.exit_code != 0
    assert "expected one of --commit, --release" in str(done.exception)
