"""Where to look for a cause: what changed between the last good and the first bad."""

from dataclasses import replace

import pytest

from hybridwatch.analysis.difference import commits_between, culprit_between, find_commits
from hybridwatch.analysis.subject import OneSide
from hybridwatch.records.identity import EngineBuild, FixState
from tests.builders import TESTBED, a_build, a_run


def side(build: EngineBuild, **changes) -> OneSide:
    return OneSide(a_run({"ttft": (0.1,)}, {"ttft": (0.1,)}, builds=(build, build), **changes), 1)


GOOD = replace(
    a_build("cpu-nightly", fixes={"x": FixState.PRESENT}),
    release="0.28.1.dev53+g1a2b3c4d5",
    distribution="vllm",
)
BAD = replace(
    GOOD,
    release="0.28.1.dev60+gffff00001.cu128",
    fixes={"x": FixState.LACKING},
    wheel_digest="9" * 64,
)
COMPARE = "https://github.com/vllm-project/vllm/compare"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("0.27.1", "0.28.0", "v0.27.1...v0.28.0"),
        ("0.27.1+cpu", "0.28.0rc2", "v0.27.1...v0.28.0rc2"),
        ("0.28.0.post1", "0.28.1.dev53+g1a2b3c4d5", "v0.28.0.post1...1a2b3c4d5"),
        ("0.28.1.dev53+g1a2b3c4d5.d20261121", "0.29.0", "1a2b3c4d5...v0.29.0"),
    ],
)
def test_two_versions_give_the_commits_between_them(old, new, told) -> None:
    found = commits_between(old, new)
    assert found
    assert (found.text, found.url) == (told, f"{COMPARE}/{told}")


@pytest.mark.parametrize(
    ("old", "new"),
    [("0.27.1", "0.27.1"), ("0.28.1.dev53", "0.28.1"), ("unknown", "0.28.0"), ("", "nightly")],
)
def test_versions_of_which_one_names_no_commit_give_none(old, new) -> None:
    assert commits_between(old, new) is None


def test_what_differs_is_named_and_what_is_the_same_is_not() -> None:
    kernel = replace(TESTBED, kernel="7.1.0")
    found = culprit_between(side(GOOD), side(BAD, testbed=kernel))
    assert found.commits
    assert found.commits.text == "1a2b3c4d5...ffff00001"
    assert [fact.what for fact in found.facts] == ["fix x", "release", "wheel", "testbed kernel"]
    assert found.lines[:2] == ("commits: 1a2b3c4d5...ffff00001", "fix x: present -> lacking")


def test_a_build_of_another_project_has_no_commits_of_this_one() -> None:
    other = replace(BAD, distribution="sglang")
    assert culprit_between(side(GOOD), side(other)).commits is None


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        ("0.28.1.dev53+g1a2b3c4d5", "0.28.1.dev60+gffff00001", 7),
        ("0.28.1.dev60+g1a2b3c4d5", "0.28.1.dev53+gffff00001", None),  # backwards
        ("0.28.1.dev53+g1a2b3c4d5", "0.29.1.dev3+gffff00001", None),  # counted from another tag
        ("0.28.0", "0.28.1.dev53+g1a2b3c4d5", None),  # a tag may lie on a branch of its own
    ],
)
def test_versions_after_one_tag_tell_how_many_commits_lie_between(old, new, count) -> None:
    found = commits_between(old, new)
    assert found
    assert found.count == count
    assert found.size == ("" if count is None else f", {count} of them")


def test_a_checkout_is_at_its_own_commit_and_nobody_knows_where_that_can_be_read() -> None:
    own = replace(BAD, revision="c" * 40)
    found = find_commits(GOOD, own)
    assert found
    assert (found.text, found.url) == (f"1a2b3c4d5...{'c' * 40}", "")
    assert find_commits(GOOD, replace(own, distribution="sglang")) is None
    assert find_commits(GOOD, BAD) == commits_between(GOOD.release, BAD.release)
