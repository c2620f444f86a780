"""A build of a pull request's newest commit: GitHub's contract, and a real index of wheels."""

import pytest

from hybridwatch.cli.engine import command
from hybridwatch.engines.builds import named_build
from hybridwatch.engines.check import check_build
from hybridwatch.errors import BuildError, GithubError
from tests import wheels as wheel_index
from tests.checkout import CODE, make_home
from tests.command_line import run_verb
from tests.github.hub import HEAD, NUMBER, REPOSITORY, TOKEN
from tests.wheels import a_wheel


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    return make_home(tmp_path / "home")


@pytest.fixture
def index(monkeypatch):
    with wheel_index.serving() as served:
        monkeypatch.setenv("HYBRIDWATCH_WHEEL_INDEX", served.template)
        yield served


def add(hub, monkeypatch, number=NUMBER, status=None):
    monkeypatch.setenv("GITHUB_API_URL", hub.base)
    words = ["add", "theirs", "--pr", str(number), "--repo", REPOSITORY]
    return run_verb(*words, of=command, status=status)


def test_head_of_a_pull_request_is_had_from_the_index(contract, home, index, tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    index.add(HEAD, a_wheel(tmp_path, "vllm", f"1.0.1.dev3+g{HEAD[:9]}", CODE))
    assert f"commit {HEAD[:12]}, no changes" in add(contract, monkeypatch, status=0).stdout
    assert check_build(named_build("theirs", home)).revision == HEAD


def test_public_pull_request_needs_no_token(hub, home, index, tmp_path, monkeypatch):
    hub.public = True
    index.add(HEAD, a_wheel(tmp_path, "vllm", f"1.0.1.dev3+g{HEAD[:9]}", CODE))
    add(hub, monkeypatch, status=0)
    assert {token for _, _, token in hub.requests} == {""}


def test_head_without_a_wheel_is_answered_with_the_way_by_a_checkout(hub, home, index, monkeypatch):
    hub.public = True
    done = add(hub, monkeypatch)
    assert isinstance(done.exception, BuildError)
    line = str(done.exception)
    assert "\n" not in line
    assert f"expected a wheel of commit {HEAD[:12]}, found none (status 404)" in line
    assert f"git fetch origin pull/{NUMBER}/head && git checkout FETCH_HEAD" in line
    assert line.endswith("hybridwatch engine add theirs --source CHECKOUT")


def test_number_of_no_pull_request_is_githubs_refusal(contract, home, index, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    done = add(contract, monkeypatch, number=NUMBER + 1)
    assert isinstance(done.exception, GithubError)
    assert f"cannot read {REPOSITORY}#{NUMBER + 1}: 404" in str(done.exception)


def test_refusal_of_somebody_without_a_token_is_reported_as_it_is(hub, home, index, monkeypatch):
    done = add(hub, monkeypatch)
    assert isinstance(done.exception, GithubError)
    assert "401: Bad credentials" in str(done.exception)
