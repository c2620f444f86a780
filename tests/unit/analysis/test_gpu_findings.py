"""Which engine is meant by "as released" and "with the fix"; tests of the page tell the rest."""

from dataclasses import replace

import pytest

from hybridwatch.records.identity import FixState
from hybridwatch_lab.gpu.findings_analysis import WantedFinding
from tests.builders import a_build

PARTS = ("draft-max-seq-len-target", "draft-max-seq-len-draft")
PRESENT, LACKING, APPLIED, REVERTED, NOTHING = (
    FixState.PRESENT,
    FixState.LACKING,
    FixState.APPLIED,
    FixState.REVERTED,
    FixState.NOT_APPLICABLE,
)


@pytest.mark.parametrize(
    ("states", "released", "patched"),
    [
        ((PRESENT, PRESENT), True, True),
        ((LACKING, LACKING), True, False),
        ((LACKING, PRESENT), True, False),
        ((APPLIED, APPLIED), False, True),
        ((APPLIED, PRESENT), False, True),
        ((APPLIED, NOTHING), False, True),
        ((LACKING, NOTHING), True, False),
        ((APPLIED, LACKING), False, False),
        ((REVERTED, PRESENT), False, False),
        ((NOTHING, NOTHING), True, False),
    ],
)
def test_engines_are_known_by_the_parts_of_the_fix(states, released, patched) -> None:
    build = a_build(release="0.21.0", fixes=dict(zip(PARTS, states, strict=True)))
    assert WantedFinding("0.21.0").is_met_by(build, ("draft-max-seq-len",)) is released
    assert WantedFinding("0.21.0", patched=True).is_met_by(build, ("draft-max-seq-len",)) is patched
    assert not WantedFinding("0.23.0").is_met_by(build, ("draft-max-seq-len",))


def test_a_build_that_says_nothing_of_the_fix_is_not_known_to_have_it() -> None:
    build = a_build(release="0.21.0", fixes={})
    assert not WantedFinding("0.21.0", patched=True).is_met_by(build, ("one-token-prompt",))


def test_what_a_scenario_requires_belongs_to_it_and_nothing_is_switched_in_a_release() -> None:
    fixes = "one-token-prompt", "conv-anchor"
    for own, required, released, patched in (
        (PRESENT, LACKING, True, False),
        (PRESENT, APPLIED, False, True),
        (APPLIED, LACKING, False, False),
        (PRESENT, NOTHING, True, True),
    ):
        states = dict(zip(fixes, (own, required), strict=True))
        build = a_build(release="0.23.0", fixes=states)
        assert WantedFinding("0.23.0").is_met_by(build, fixes) is released
        assert WantedFinding("0.23.0", patched=True).is_met_by(build, fixes) is patched


def test_a_build_of_somebodys_own_is_not_the_release() -> None:
    """Its variables may have chosen another model runner, say."""
    for name, meant in (("cuda-0.33.0", True), ("cuda-0.33.0-v1", False), ("adopted", True)):
        build = replace(a_build(release="0.33.0", fixes={}), name=name, accelerator="cuda")
        assert WantedFinding("0.33.0").is_met_by(build, ()) is meant
