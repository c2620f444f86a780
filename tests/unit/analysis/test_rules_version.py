"""Verdicts move only together with RULES_VERSION.

Two reports are the same only if every bit is.
"""

import copy
import json
import math
import random
from collections.abc import Iterator
from typing import Any

import pytest

from hybridwatch.analysis import crossing, judge, rank, replay, run_noise, signed_rank
from hybridwatch.analysis.replay import (
    ABSENT,
    Deviation,
    VerdictReplay,
    changes_between,
    deviations_between,
    list_parameters,
    noise_in,
    present_tools,
)
from hybridwatch.analysis.report import Terms, build_report, report_between
from hybridwatch.analysis.run_noise import noise_between
from hybridwatch.analysis.subject import MEMORY_SUBJECTS, OneSide
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.analysis.wording.report_json import to_json
from hybridwatch.errors import ComparisonError
from hybridwatch.metrics import METRICS, SEND_LATENESS, SLO_REQUEST_RATE, START_METRICS
from hybridwatch.records import run as completion
from hybridwatch.records.run import Run
from hybridwatch.records.store import list_records, read_run
from tests.builders import (
    BASELINE,
    CONTENDER,
    NEWER,
    STARTED,
    a_run,
    a_run_that_said,
    an_asv_side,
    noisy,
    said,
)
from tests.curves import a_swept_run, even, tilted
from tests.shipped import RESULTS
from tests.situations import SITUATIONS
from tests.versions import Version, check_version

GOLDEN = "rules/verdicts.json"
NEW = ("request_goodput", SLO_REQUEST_RATE, SEND_LATENESS, *MEMORY_SUBJECTS, *START_METRICS)
"""Metrics that came after the present version was reviewed; it has others of their kind."""
MEASURED = (
    *(one.id for one in METRICS if one.id not in NEW),
    "contract.padded_rows_prefilling",
    "accuracy.recall",
)


def rules() -> Version:
    return Version("RULES_VERSION", replay.RULES_VERSION, "verdicts")


def of_records() -> Iterator[tuple[str, Any]]:
    """Every committed run: alone if it has two builds, else beside the first that has one."""
    alone: list[Run] = []
    for path in list_records(RESULTS):
        run = read_run(path)
        if len(run.builds) == 2:
            yield f"run {run.id}", to_json(build_report(run))
        else:
            alone.append(run)
    for run in alone[1:]:
        yield f"run {run.id}", to_json(report_between(OneSide(alone[0], 0), OneSide(run, 0)))


def of_every_metric() -> Iterator[tuple[str, Any]]:
    """Every metric with few trials and with many, within blocks and between runs."""
    for trials in (3, 7, 24):
        old, new = ({name: _values(name, trials, side) for name in MEASURED} for side in (0, 1))
        yield f"{trials} trials in turn", to_json(build_report(a_run(old, new)))
        sides = OneSide(a_run(old), 0), OneSide(a_run(new, id="22222222"), 0)
        history = [OneSide(_of_night(night), 0) for night in range(21)]
        terms = Terms(noise=noise_between(history, *sides))
        yield f"{trials} trials of two runs", to_json(report_between(*sides, terms))


def of_tokens() -> Iterator[tuple[str, Any]]:
    """Equal tokens, a near tie, and a change beyond the bound; of one build and of two."""
    ours = [said(1), said(1, near={0: (2, 0.0009)}), said(1, near={0: (2, 0.0011)})]
    theirs = [said(1), said(2, near={0: (1, 0.0009)}), said(2, near={0: (1, 0.0011)})]
    for name, contender in (("one build", CONTENDER), ("two builds", NEWER)):
        run = a_run_that_said([ours], [theirs], builds=(BASELINE, contender))
        yield f"tokens of {name}", to_json(build_report(run))


def of_intervals() -> Iterator[tuple[str, Any]]:
    """Medians of asv with an interval each: far apart, near, and alike."""
    for change in (1.5, 1.2, 1.0):
        sides = an_asv_side(0.01, 0.01), an_asv_side(0.01 * change, 0.01, id="22222222")
        yield f"intervals {change:g} apart", to_json(report_between(*sides))


def of_curves() -> Iterator[tuple[str, Any]]:
    """Sweeps: curves that are alike, and curves that cross."""
    for name, contender in (("are alike", even), ("cross", tilted)):
        yield f"curves that {name}", to_json(build_report(a_swept_run(even, contender)))


def _of_night(night: int) -> Run:
    side = {name: _values(name, 3, 0, seed=night + 9) for name in MEASURED}
    return a_run(side, id=f"{night:08x}")


def _values(metric: str, trials: int, side: int, seed: int = 1) -> Any:
    if metric.startswith("contract."):
        return (0.0, 3.0 * side, 0.0)
    if metric.startswith("accuracy."):
        return "1" * (40 - 9 * side) + "0" * (8 + 9 * side)
    return noisy(1.0 + 0.06 * side, trials, 0.02, seed=side + seed)


def constructed() -> dict[str, Any]:
    made = {name: to_json(situation()) for name, situation in SITUATIONS.items()}
    for more in (of_every_metric, of_tokens, of_intervals, of_curves):
        made |= more()
    return made


def reports() -> dict[str, Any]:
    return {**constructed(), **dict(of_records())}


def test_verdicts_move_only_together_with_the_version_of_the_rules(golden) -> None:
    check_version(golden, GOLDEN, rules(), reports())


@pytest.mark.parametrize(
    ("module", "name", "defect"),
    [
        (judge, "FALSE_DISCOVERY_RATE", 0.06),
        (completion, "NEAR_TIE_FLOAT32", 0.0012),
        (judge, "_is_relevant", lambda _: True),
        (run_noise, "_find_levels", lambda values: [values[:9], values[9:]]),
        (rank, "SEED", rank.SEED + 1),
        (rank, "SETTLING_TRIALS", 8),
        (signed_rank, "SETTLING_BLOCKS", 8),
        (crossing, "signed_rank_p", lambda _: 1.0),
    ],
)
def test_a_defect_in_a_rule_demands_another_version(
    golden, monkeypatch, module, name, defect
) -> None:
    monkeypatch.setattr(module, name, defect)
    with pytest.raises(pytest.fail.Exception, match="verdicts moved: raise RULES_VERSION"):
        check_version(golden, GOLDEN, rules(), constructed())


def test_a_verdict_names_the_version_of_its_rules() -> None:
    assert present_tools()["rules"] == str(replay.RULES_VERSION)
    tools = {"hybridwatch", "rules", "python", "numpy", "scipy", "arithmetic"}
    assert set(present_tools()) == tools


def test_the_reviewed_reports_hold_every_verdict() -> None:
    said = {one["verdict"] for report in constructed().values() for one in report["comparisons"]}
    assert said == {verdict.value for verdict in Verdict}


def test_a_raised_version_asks_for_a_review(golden, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(replay, "RULES_VERSION", replay.RULES_VERSION + 1)
    copy = type(golden)(tmp_path)
    (tmp_path / "rules").mkdir()
    (tmp_path / GOLDEN).write_text((golden.folder / GOLDEN).read_text())
    with pytest.raises(pytest.fail.Exception, match="look at it and rename it if it is right"):
        check_version(copy, GOLDEN, rules(), {"one": {"started": str(STARTED)}})


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
