"""What was not measured recently must be told, and only what nobody expects may be silent.

A definition that was changed ends a series; loads that are measured in turn do not.
"""

from datetime import UTC, datetime, timedelta

import pytest

from hybridwatch.analysis.freshness import (
    Gap,
    LastMeasured,
    age_text,
    change_text,
    find_successor,
    gaps,
    successors,
)
from hybridwatch.analysis.policy import Policy
from tests.builders import STARTED

NOW = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)
SMOKE = Policy(expected=("smoke",))
ROWS, RUN = "smoke/padded-graph-rows", "smoke/dummy-run"


def measured(scenario: str, testbed: str, days: float) -> LastMeasured:
    return LastMeasured(scenario, testbed, NOW - timedelta(days=days), f"run-{days:g}")


def places(found: tuple[Gap, ...]) -> list[tuple[str, str]]:
    return [(gap.scenario, gap.testbed) for gap in found]


WEEK = Policy(expected=("smoke",), max_age_days=7)


@pytest.mark.parametrize(
    ("policy", "there", "told"),
    [
        pytest.param(SMOKE, [(ROWS, "h100", 1.9)], [], id="within two days"),
        pytest.param(SMOKE, [(ROWS, "h100", 1), (ROWS, "h100", 9)], [], id="the newest counts"),
        pytest.param(WEEK, [(ROWS, "h100", 4)], [], id="the policy says how old is too old"),
        pytest.param(
            SMOKE, [("reported/old", "h100", 9), (ROWS, "h100", 1)], [], id="not expected"
        ),
        pytest.param(
            Policy(),
            [(ROWS, "h100", 9), (RUN, "h100", 0), ("old/one", "h100", 60)],
            [(ROWS, "h100")],
            id="without expectations whatever was measured lately",
        ),
        pytest.param(SMOKE, [(ROWS, "gone", 32), (ROWS, "h100", 1)], [], id="30 days not seen"),
        pytest.param(SMOKE, [(ROWS, "h100", 90)], [(ROWS, "h100")], id="all is old"),
        pytest.param(Policy(), [(ROWS, "h100", 90)], [(ROWS, "h100")], id="all is old, no names"),
        pytest.param(SMOKE, [(ROWS, "h100", 1), (RUN, "epyc", 1)], [], id="never measured there"),
    ],
)
def test_gaps_are_what_is_expected_and_was_not_measured_in_time(policy, there, told) -> None:
    assert places(gaps([measured(*one) for one in there], policy, NOW)) == told


def test_a_testbed_that_went_silent_is_reported_though_another_measures() -> None:
    found = gaps([measured(ROWS, "h100", 4), measured(ROWS, "epyc", 0.2)], SMOKE, NOW)
    assert places(found) == [(ROWS, "h100")]
    assert found[0].reason == "not measured since 2026-11-18 (4 days): run-4"


def test_a_scenario_that_only_a_forgotten_testbed_measured_is_missing_everywhere() -> None:
    found = gaps([measured(ROWS, "gone", 40), measured(RUN, "h100", 0)], SMOKE, NOW)
    assert places(found) == [(ROWS, "")]
    assert found[0].reason == (
        "not measured since 2026-10-13 (40 days) on any expected testbed: run-40"
    )


def test_a_scenario_that_was_never_measured_is_missing() -> None:
    found = gaps([measured(ROWS, "h100", 1)], SMOKE, NOW, (ROWS, RUN, "reported/old"))
    assert places(found) == [(RUN, "")]
    assert found[0].reason == "missing: there is no record of it; measure it"
    assert places(gaps([], Policy(expected=(RUN,)), NOW)) == [(RUN, "")]


def test_testbeds_that_the_policy_names_are_expected_and_no_others() -> None:
    only = Policy(expected=("smoke",), testbeds=("h100*",))
    there = [measured(ROWS, "h100-1", 50), measured(ROWS, "epyc", 9), measured(RUN, "epyc", 0)]
    found = gaps(there, only, NOW)
    assert places(found) == [(RUN, ""), (ROWS, "h100-1")]
    assert found[0].last is None


def test_an_expected_testbed_that_never_measured_is_reported() -> None:
    wanted = Policy(expected=("smoke",), testbeds=("epyc", "mi300*"))
    assert places(gaps([measured(ROWS, "epyc", 0)], wanted, NOW)) == [("", "mi300*")]


def test_a_record_from_the_future_is_fresh() -> None:
    assert gaps([measured(ROWS, "h100", -1)], SMOKE, NOW) == ()
    assert age_text(timedelta(days=-1)) == "0 hours"


def test_ages_are_reported_in_hours_and_days() -> None:
    told = [age_text(timedelta(hours=hours)) for hours in (1, 47, 48, 100)]
    assert told == ["1 hour", "47 hours", "2 days", "4 days"]


DIGESTS = ("a" * 64, "b" * 64)


def _nights(*digests: str) -> list[tuple[str, datetime]]:
    """Definitions measured one an hour from each midnight on; words are nights."""
    return [
        (digest, STARTED + timedelta(days=night, hours=hour))
        for night, loads in enumerate(digests)
        for hour, digest in enumerate(loads)
    ]


def test_a_changed_definition_takes_the_place_of_the_one_before() -> None:
    found = successors(_nights(*"aaabbcc"))
    assert found == {"a": "b", "b": "c"}
    assert [find_successor(one, found) for one in "abc"] == ["c", "c", "c"]


def test_two_loads_of_each_night_go_on_next_to_each_other() -> None:
    assert successors(_nights("ab", "ab", "ab")) == {}


def test_a_load_that_is_new_ends_none_of_the_same_night() -> None:
    assert successors(_nights("ab", "ab", "abc")) == {}
    assert successors(_nights("ab", "ab", "abc", "abc")) == {}


def test_a_definition_that_comes_back_has_not_ended() -> None:
    assert successors(_nights(*"aaabba")) == {}


def test_of_two_loads_that_were_both_changed_each_has_a_successor() -> None:
    found = successors(_nights("ab", "ab", "cd", "cd", "cd"))
    assert found.keys() == {"a", "b"}
    assert {*found.values()} <= {"c", "d"}


def test_what_changed_is_said_by_settings_else_by_the_version() -> None:
    one, many = {"max_concurrency": "1", "model": "m"}, {"max_concurrency": "64", "model": "m"}
    assert change_text(one, many, (1, 1), DIGESTS) == "max_concurrency 1 → 64"
    assert change_text(one, one | {"rate": "2"}, (1, 2), DIGESTS) == "rate none → 2"
    assert change_text({}, many, (2, 3), DIGESTS) == "version 2 → 3"
    assert change_text(one, one, (1, 1), DIGESTS) == (
        "the scenario's definition changed, digest aaaaaaaa → bbbbbbbb"
    )
    named = {str(number): "a" for number in range(5)}
    assert change_text(named, dict.fromkeys(named, "b"), (1, 1), DIGESTS) == (
        "0 a → b, 1 a → b, 2 a → b and 2 more"
    )
