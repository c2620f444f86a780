"""A definition that was changed ends a series; loads that are measured in turn do not."""

from datetime import timedelta

from hybridwatch.analysis.succession import successors
from tests.builders import STARTED


def _nights(*digests: str) -> list[tuple[str, object]]:
    """Definitions measured one an hour from each midnight on; words are nights."""
    return [
        (digest, STARTED + timedelta(days=night, hours=hour))
        for night, loads in enumerate(digests)
        for hour, digest in enumerate(loads)
    ]


def test_a_changed_definition_takes_the_place_of_the_one_before() -> None:
    assert successors(_nights(*"aaabbcc")) == {"a": "c", "b": "c"}


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
