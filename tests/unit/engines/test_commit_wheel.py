"""Wheels of single commits, had from a real index over HTTP."""

import tomllib

import pytest
from click.testing import CliRunner

from hybridwatch.cli.engine import command
from hybridwatch.engines.builds import OWN_FILE, load_builds, named_build
from hybridwatch.engines.check import check_build
from hybridwatch.engines.own_builds import add_commit
from hybridwatch.engines.pip import INDEX_VARIABLE, NoWheelError, find_wheel
from hybridwatch.errors import BuildError
from tests import wheel_index
from tests.small_release import CODE, make_home
from tests.wheels import a_wheel

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
    done = CliRunner().invoke(command, words)
    assert isinstance(done.exception, BuildError)
    assert str(done.exception).endswith("; add a checkout of it with --source")


def test_index_that_fails_is_told_from_one_that_lacks_the_commit(home, index):
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
    done = CliRunner().invoke(command, words)
    assert str(done.exception) == "--index: only --commit and --pr look there, found --source"
