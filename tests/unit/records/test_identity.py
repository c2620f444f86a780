"""Builds of one line, stated or derived from the label; and labels that are the same tomorrow."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from hybridwatch.records.identity import (
    LONGEST_LINE,
    checked_line,
    compares_releases,
    derived_line,
    is_lasting,
    is_release,
    lasting_label,
    name_line,
)
from tests.builders import a_build


@pytest.mark.parametrize(
    ("label", "line"),
    [
        ("nightly-20261121", "nightly"),
        ("nightly-20261121+unzeroed-state", "nightly+unzeroed-state"),
        ("cuda-nightly-2026-11-21~prev-step-anchor", "cuda-nightly~prev-step-anchor"),
        ("20261121-nightly", "nightly"),
        ("cpu-0.28.1.dev123", "cpu-dev"),
        ("0.28.0rc1.dev5+g0123abcd.d20261121+slow-step", "dev+slow-step"),
        ("cpu-nightly-8f3a2c1", "cpu-nightly"),
        ("vllm/vllm-openai:nightly-g8f3a2c1d", "vllm/vllm-openai:nightly"),
        ("nightly-d4ad43a03b0c4ab659709e2c5795801bd343588a", "nightly"),
        ("8f3a2c1", "dev"),
        ("8f3a2c1~prev-step-anchor", "dev~prev-step-anchor"),
        ("mine@1a2b3c4d", "mine"),
        ("mine@1a2b3c4d~prev-step-anchor", "mine~prev-step-anchor"),
    ],
)
def test_nightly_labels_are_one_line(label, line) -> None:
    assert derived_line(label) == line


def test_a_release_whose_code_was_changed_is_not_in_the_line_of_the_release() -> None:
    assert derived_line("cpu-0.27.1@12345678+slow-step") == "cpu-0.27.1@changed+slow-step"


@pytest.mark.parametrize(
    "label",
    [
        "cpu-0.27.1",
        "cpu-0.28.0",
        "adopted",
        "cpu-0.27.1+slow-step",
        "deadbeef",
        "1234567",
        "conda-py3.9-numpy",
        "-odd.",
    ],
)
def test_a_release_and_a_name_are_lines_of_their_own(label) -> None:
    assert derived_line(label) == label


def test_a_stated_line_is_that_of_the_derived_one_and_keeps_switches_apart() -> None:
    def stated(label: str) -> str:
        return name_line(SimpleNamespace(label=label, line="nightly"))

    assert stated("mine@1a2b3c4d") == derived_line("nightly-20261121") == "nightly"
    assert stated("mine@1a2b3c4d~conv-anchor+slow-step") == "nightly~conv-anchor+slow-step"


@pytest.mark.parametrize("text", ["nightly", "pr-1234", "a+b_c.d-9", "x" * LONGEST_LINE])
def test_a_line_may_be_stated(text) -> None:
    assert checked_line(text) == text


@pytest.mark.parametrize("text", ["", "two words", "a/b", "nightly\n", "ü", "x" * 65, "a~b"])
def test_what_is_no_line_is_reported_with_what_was_expected(text) -> None:
    with pytest.raises(ValueError, match="expected 1 to 64 letters, digits and any of"):
        checked_line(text)


@pytest.mark.parametrize(
    ("baseline", "contender", "both"),
    [
        ("0.28.0", "0.29.0", True),
        ("cpu-0.28.0", "cpu-0.29.0rc1", True),
        ("vllm-v0.28.0", "vllm-v0.28.0.post1", True),
        ("cpu-0.28.0", "cpu-0.28.0", False),  # how quiet the machine is
        ("cpu-0.28.0", "nightly", False),
        ("nightly", "cpu-0.28.0", False),
        ("cpu-0.28.0", "cpu-0.28.0@changed", False),
        ("cpu-0.28.0", "cpu-0.29.0+slow-step", False),
        ("cpu-0.28.0", "release-0.29", False),
    ],
)
def test_two_releases_are_a_comparison_that_never_changes(baseline, contender, both) -> None:
    assert compares_releases(baseline, contender) is both


def test_a_line_with_switches_is_still_that_of_a_release() -> None:
    assert is_release("cpu-0.28.0")
    assert is_release("cpu-0.28.0~conv-anchor+slow-step")
    assert not is_release("nightly~conv-anchor")


@pytest.mark.parametrize(
    ("name", "switches", "release", "label", "lasting"),
    [
        ("cpu-0.27.1", "~x", "0.27.1", "cpu-0.27.1~x", True),
        ("nightly", "", "0.28.0", "cpu-0.28.0", False),
        ("nightly", "~x+slow-step", "0.28.0", "cpu-0.28.0~x+slow-step", False),
        ("adopted", "", "0.28.1.dev3+g1a2b3c4d5", "adopted", False),
        ("mine", "@1a2b3c4d~x", "0.28.0", "mine@1a2b3c4d~x", True),
    ],
)
def test_a_label_is_pinned_to_its_release(name, switches, release, label, lasting) -> None:
    build = replace(a_build(name + switches), name=name, release=release)
    assert (lasting_label(build), is_lasting(build)) == (label, lasting)
