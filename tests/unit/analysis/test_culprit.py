"""Where to look for a cause: what changed between the last good and the first bad."""

from dataclasses import replace

import pytest

from hybridwatch.analysis.culprit import commits_between, culprit_between
from hybridwatch.analysis.one_side import OneSide
from hybridwatch.record.identity import EngineBuild, FixState
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
