"""Commits of a clone of vLLM, and the wheels that an index has of them."""

import tomllib

import pytest

from hybridwatch.cli.engine import command
from hybridwatch.engines.builds import OWN_FILE, load_builds, named_build
from hybridwatch.engines.check import check_build
from hybridwatch.engines.code_tree import commit_tree, commits_between, find_sha, python_changes
from hybridwatch.engines.install import InstallState, state
from hybridwatch.engines.own_builds import add_commit, add_source, remove_build
from hybridwatch.engines.pip import INDEX_VARIABLE, NoWheelError, find_wheel
from hybridwatch.errors import BuildError
from tests import wheels as wheel_index
from tests.checkout import CODE, a_clone, commit, git, make_home, write
from tests.command_line import run_verb
from tests.wheels import a_wheel


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
    done = run_verb(*add, "--source", clone, of=command, status=0)
    assert f"commit {find_sha(clone, 'HEAD~2')[:12]}, no changes" in done.output
    done = run_verb(*add, "--release", "1.0", of=command)
    assert done.exit_code != 0
    assert "expected one of --commit, --release" in str(done.exception)


COMMIT = "1a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6d7e8f9a0b"
VERSION = f"1.0.1.dev3+g{COMMIT[:9]}"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A checkout with one installed build, of release 1.0."""
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(tmp_path / "home"))
    return make_home(tmp_path / "home")


@pytest.fixture
def index():
    with wheel_index.serving() as served:
        yield served


def made(tmp_path, version=VERSION, rows=2):
    code = {**CODE, "vllm/v1/worker.py": f"rows = {rows}\n"}
    return a_wheel(tmp_path / "wheels", "vllm", version, code)


def test_build_of_a_commit_is_its_wheel_over_the_release_and_says_the_commit(home, tmp_path, index):
    index.add(COMMIT, made(tmp_path))
    build = add_commit(home, "theirs", COMMIT, index=index.template)
    assert (build.release, build.base) == (VERSION, "tiny-1.0")
    found = check_build(build)
    assert (found.revision, found.diff_digest) == (COMMIT, None)
    assert found.code_digest != check_build(named_build("tiny-1.0", home)).code_digest
    entry = tomllib.loads((home / OWN_FILE).read_text())["builds"]["theirs"]
    assert entry["origin"] == {"commit": COMMIT, "index": index.template}
    made_by = f"hybridwatch engine add theirs --commit {COMMIT} --index '{index.template}'"
    assert build.made_by == f"{made_by} --base tiny-1.0"
    assert not list((home / ".engines").glob("*.wheel"))


def test_index_may_be_named_by_a_variable(home, tmp_path, index, monkeypatch):
    index.add(COMMIT, made(tmp_path), digests=False)
    monkeypatch.setenv(INDEX_VARIABLE, index.template)
    assert add_commit(home, "theirs", COMMIT).origin == {"commit": COMMIT}


def test_two_commits_are_two_series(home, tmp_path, index):
    other = COMMIT[::-1]
    index.add(COMMIT, made(tmp_path))
    index.add(other, made(tmp_path, f"1.0.1.dev4+g{other[:9]}", rows=3))
    codes = {
        check_build(add_commit(home, "theirs", commit, index=index.template)).code_digest
        for commit in (COMMIT, other)
    }
    assert len(codes) == 2


def test_commit_that_the_index_lacks_is_named_and_on_a_cpu_why(home, index):
    match = (
        rf"^{index.base}/{COMMIT}/vllm/: expected a wheel of commit {COMMIT[:12]}, found none "
        r"\(status 404\); CPU wheels are made of nightlies alone$"
    )
    with pytest.raises(NoWheelError, match=match):
        add_commit(home, "theirs", COMMIT, index=index.template)
    with pytest.raises(NoWheelError, match=r"\(status 404\)$"):
        find_wheel(COMMIT, "cuda", index.template)


def test_command_names_the_other_way_where_there_is_no_wheel(home, index):
    words = ["add", "theirs", "--commit", COMMIT, "--index", index.template]
    done = run_verb(*words, of=command)
    assert isinstance(done.exception, BuildError)
    assert str(done.exception).endswith("; add a checkout of it with --source")


def test_index_that_fails_is_distinguished_from_one_that_lacks_the_commit(home, index):
    index.files[f"/{COMMIT}/vllm/"] = 503, b"busy"
    with pytest.raises(BuildError, match=r"/vllm/: expected status 200, found 503$") as raised:
        add_commit(home, "theirs", COMMIT, index=index.template)
    assert not isinstance(raised.value, NoWheelError)


def test_server_that_is_not_there_is_named(home):
    with pytest.raises(BuildError, match=r"^http://127\.0\.0\.1:1/.*: cannot be read: "):
        add_commit(home, "theirs", COMMIT, index="http://127.0.0.1:1/{commit}")


@pytest.mark.parametrize("digests", [True, False])
def test_truncated_wheel_is_refused_and_leaves_what_was_there(home, tmp_path, index, digests):
    index.add(COMMIT, made(tmp_path))
    before = check_build(add_commit(home, "theirs", COMMIT, index=index.template)).code_digest
    index.add(COMMIT, wheel := made(tmp_path, rows=3), digests=digests)
    index.cut.add(f"/{COMMIT}/{wheel.name.replace('+', '%2B')}")
    with pytest.raises(BuildError, match=r"\.whl.*: pip cannot have it:\n"):
        add_commit(home, "theirs", COMMIT, index=index.template)
    assert check_build(named_build("theirs", home)).code_digest == before


def test_wheel_of_another_commit_is_refused_before_it_is_fetched(home, tmp_path, index):
    wheel = made(tmp_path, "1.0.1.dev3+gffffffff.cu129")
    index.add(COMMIT, wheel)
    del index.files[f"/{COMMIT}/{wheel.name.replace('+', '%2B')}"]
    match = rf"expected a wheel of commit {COMMIT[:12]}, found vllm-1\.0\.1\.dev3\+gffffffff"
    with pytest.raises(BuildError, match=match):
        add_commit(home, "theirs", COMMIT, index=index.template)
    assert "theirs" not in load_builds(home)


def test_wheels_for_other_machines_are_left_alone(tmp_path, index):
    fitting = made(tmp_path)
    foreign = fitting.rename(fitting.with_name(fitting.name.replace("none-any", "none-win_arm64")))
    index.add(COMMIT, foreign)
    with pytest.raises(
        NoWheelError, match=r"expected a wheel for this machine, found vllm-1\.0\.1"
    ):
        find_wheel(COMMIT, "cuda", index.template)
    index.add(COMMIT, foreign, made(tmp_path))
    assert "none-any" in find_wheel(COMMIT, "cuda", index.template).address


@pytest.mark.parametrize("commit", [COMMIT[:12], "main", COMMIT.upper()])
def test_commit_that_is_not_whole_is_refused(commit):
    with pytest.raises(BuildError, match="expected all 40 digits, as git rev-parse prints them"):
        find_wheel(commit, "cuda", "http://127.0.0.1:1/{commit}")


def test_index_without_a_place_for_the_commit_is_refused():
    with pytest.raises(BuildError, match=r"^index http://127\.0\.0\.1:1/nightly: expected .*\{com"):
        find_wheel(COMMIT, "cuda", "http://127.0.0.1:1/nightly")


def test_index_is_for_commits_alone(home, tmp_path):
    words = ["add", "theirs", "--source", str(tmp_path), "--index", "http://127.0.0.1:1/{commit}"]
    done = run_verb(*words, of=command)
    assert str(done.exception) == "--index: only --commit and --pr look there, found --source"
