"""What a run is for, told by its engines."""

from dataclasses import replace

import pytest

from hybridwatch.records.identity import FixState
from hybridwatch.records.role import Role, is_known_bad, lost_fixes, name_role
from tests.builders import BASELINE, CONTENDER, a_build

APPLIED = a_build("cpu-0.26.0+x", fixes={"x": FixState.APPLIED})
LACKING = a_build("cpu-0.26.0", fixes={"x": FixState.LACKING})
UPGRADED = replace(CONTENDER, release="0.28.0")
SLOWED = a_build("cpu-0.27.1+slow-step", fixes={})
GONE = a_build(fixes={"padded-rows-prefilling": FixState.LACKING})
HALF_GONE = a_build(
    "cpu-0.27.1~padded-rows-prefilling",
    fixes={"padded-rows-prefilling": FixState.REVERTED, "x": FixState.LACKING},
)
BOTH = a_build(fixes={**BASELINE.fixes, "x": FixState.PRESENT})
REPAIRED = a_build("cpu-0.27.1+stale-block-table", fixes={})


@pytest.mark.parametrize(
    ("baseline", "contender", "role"),
    [
        (BASELINE, CONTENDER, Role.KNOWN_BAD),
        (APPLIED, LACKING, Role.KNOWN_BAD),
        (BASELINE, BASELINE, Role.A_A),
        (CONTENDER, CONTENDER, Role.A_A),
        (CONTENDER, BASELINE, Role.COMPARISON),
        (LACKING, APPLIED, Role.COMPARISON),
        (BASELINE, UPGRADED, Role.COMPARISON),
        (BASELINE, replace(BASELINE, release="0.28.0"), Role.COMPARISON),
        (BASELINE, GONE, Role.COMPARISON),
        (BOTH, HALF_GONE, Role.COMPARISON),
        (BASELINE, SLOWED, Role.PLANTED),
        (SLOWED, BASELINE, Role.COMPARISON),
        (BASELINE, REPAIRED, Role.COMPARISON),
    ],
)
def test_engines_tell_what_their_run_is_for(baseline, contender, role) -> None:
    assert name_role(baseline, contender) is role
    assert is_known_bad(baseline, contender) is (role is Role.KNOWN_BAD)


@pytest.mark.parametrize(
    ("known_bad", "role"),
    [(True, Role.KNOWN_BAD), (None, Role.KNOWN_BAD), (False, Role.COMPARISON)],
)
def test_a_label_that_lacks_a_fix_is_no_control_if_the_record_says_so(known_bad, role) -> None:
    assert name_role(BASELINE, CONTENDER, known_bad=known_bad) is role


def test_every_lost_fix_is_named() -> None:
    states = {"b": FixState.PRESENT, "a": FixState.APPLIED, "c": FixState.LACKING}
    before = a_build(fixes={**states, "d": FixState.PRESENT})
    after = a_build(fixes={**states, "a": FixState.LACKING, "b": FixState.REVERTED})
    assert lost_fixes(before, after) == ("a", "b")
    assert lost_fixes(after, before) == ()
