"""What a run is for, told by its engines, and short names of its sides."""

from dataclasses import replace

import pytest

from hybridwatch.records.identity import (
    LONGEST,
    FixState,
    Role,
    is_known_bad,
    lost_fixes,
    name_role,
    side_names,
)
from hybridwatch.scenarios.fixes import FIXES
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
    before = {**states, "d": FixState.PRESENT}
    after = {**states, "a": FixState.LACKING, "b": FixState.REVERTED}
    assert lost_fixes(before, after) == ("a", "b")
    assert lost_fixes(after, before) == ()


LONG = "cpu-0.27.1~all-cache-spec-decode-anchor+prev-step-anchor+conv-anchor+block-end-states"
HEALTHY = "cpu-0.27.1+prev-step-anchor+conv-anchor+block-end-states"


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ((HEALTHY, LONG), ("released + 3 fixes", "without anchor")),
        (("cpu-0.27.1", LONG), ("released", "without anchor, with 3 fixes")),
        (("cpu-0.28.0", LONG), ("cpu-0.28.0", "cpu-0.27.1 without anchor, with 3 fixes")),
        ((LONG,), ("cpu-0.27.1 + 3 fixes, 1 out",)),
        ((LONG, LONG), ("cpu-0.27.1 + 3 fixes, 1 out",) * 2),
    ],
)
def test_long_labels_go_by_what_tells_them_apart(labels, names) -> None:
    assert side_names(labels) == names


def test_labels_that_fit_stay_as_they_are() -> None:
    labels = ("cpu-0.27.1", "cpu-0.27.1~padded-rows-prefilling")
    assert side_names(labels) == labels


@pytest.mark.parametrize("fix", FIXES)
def test_every_known_bad_side_has_a_short_name_of_its_own(fix) -> None:
    base = "a-build-with-quite-a-long-name-of-its-own-0.27.1"
    healthy, bad = side_names((f"{base}+conv-anchor", f"{base}+conv-anchor~{fix}"))
    assert healthy != bad
    assert len(bad) <= LONGEST


def test_names_that_would_not_tell_sides_apart_are_not_used() -> None:
    one = f"cpu-0.27.1{''.join(f'+{fix}' for fix in FIXES[:5])}"
    other = f"cpu-0.27.1{''.join(f'+{fix}' for fix in FIXES[5:10])}"
    assert side_names((one, other)) == (one, other)
