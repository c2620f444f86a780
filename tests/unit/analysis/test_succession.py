"""A definition that was changed ends a series; loads that are measured in turn do not."""

from datetime import datetime, timedelta

from hybridwatch.analysis.freshness import change_text, find_successor, successors
from tests.builders import STARTED

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


def test_two_loads_of_each_night_go_on_beside_each_other() -> None:
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
