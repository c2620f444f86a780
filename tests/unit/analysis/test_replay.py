"""Two reports are the same only if every bit is."""

import copy
import json
import math
import random

import pytest

from hybridwatch.analysis.replay import (
    ABSENT,
    Deviation,
    VerdictReplay,
    changes_between,
    deviations_between,
    list_parameters,
    noise_in,
)
from hybridwatch.analysis.wording.report_json import to_json
from hybridwatch.errors import ComparisonError
from tests.situations import SITUATIONS


def stored(situation: str = "regression"):
    return json.loads(json.dumps(to_json(SITUATIONS[situation]())))


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_report_through_a_file_is_the_same(situation) -> None:
    assert deviations_between(stored(situation), to_json(SITUATIONS[situation]())) == ()


def numbers_of(value, path=()):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from numbers_of(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from numbers_of(item, (*path, at))
    elif isinstance(value, float):
        yield path, value


def test_one_bit_of_any_number_is_found() -> None:
    report = stored()
    floats = list(numbers_of(report))
    assert len(floats) > 100
    for path, value in random.Random(1).sample(floats, 60):
        changed = copy.deepcopy(report)
        place = changed
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = math.nextafter(value, math.inf)
        [found] = deviations_between(changed, report)
        assert (found.stored, found.again) == (math.nextafter(value, math.inf), value)
        assert found.path.endswith(str(path[-1]) if isinstance(path[-1], str) else "]")


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ({"a": [1.0, 2.0]}, {"a": [1.0]}, "a[1]"),
        ({"a": [1.0]}, {"a": [1.0, 2.0]}, "a[1]"),
        ({"a": {"b": 1}}, {"a": {}}, "a.b"),
        ({"a": 1}, {"a": 1.0}, "a"),
        ({"a": 1}, {"a": True}, "a"),
        ({"a": 0.0}, {"a": -0.0}, "a"),
        ({"a": None}, {"a": 0}, "a"),
        ({"a": [{"b": "x"}]}, {"a": [{"b": "y"}]}, "a[0].b"),
        ({"a": []}, {"a": {}}, "a"),
    ],
)
def test_every_other_difference_has_a_place(old, new, path) -> None:
    assert [deviation.path for deviation in deviations_between(old, new)] == [path]


def test_what_is_said_in_addition_is_no_deviation_what_is_missing_is() -> None:
    assert deviations_between({"a": 1}, {"a": 1, "b": 2}) == ()
    assert deviations_between({"a": 1, "b": 2}, {"a": 1}) == (Deviation("b", 2, ABSENT),)


def test_noise_goes_through_the_parameters_and_back() -> None:
    noise = {("ttft", "p99"): 0.1, ("tpot", "median"): 0.012345678901234567}
    parameters = json.loads(json.dumps(list_parameters(0.05, noise)))
    assert noise_in(parameters) == noise
    assert parameters["level"] == 0.05


@pytest.mark.parametrize(
    "parameters", [{}, {"noise": 1}, {"noise": {"ttft": 0.1}}, {"noise": {"ttft p99": "much"}}]
)
def test_noise_of_another_form_is_refused(parameters) -> None:
    with pytest.raises(ComparisonError, match=r"parameters\.noise"):
        noise_in(parameters)


def test_only_other_tools_are_named() -> None:
    then, now = {"numpy": "2.4.6", "scipy": "1"}, {"numpy": "2.4.6", "scipy": "2", "new": "1"}
    assert changes_between(then, now) == ("scipy: 1 -> 2", f"new: {ABSENT} -> 1")


def test_same_takes_the_same_numbers_and_the_same_files() -> None:
    assert VerdictReplay((), (), ("numpy: 1 -> 2",)).same
    assert not VerdictReplay((), ("the record was altered",), ()).same
    assert not VerdictReplay((Deviation("a", 1, 2),), (), ()).same
