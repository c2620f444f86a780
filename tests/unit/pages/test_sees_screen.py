"""Whether the suite sees, as a screen tells it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hybridwatch.analysis.calibration import (
    Bound,
    Calibration,
    Figure,
    FigurePromise,
    read_calibration,
)
from hybridwatch.analysis.detection import ControlReading, Detection, find_detection
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.database.queries import open_index
from hybridwatch.errors import ExportError
from hybridwatch.history.checkout import Checkout
from hybridwatch.history.controls import list_controls
from hybridwatch.records.identity import Role
from hybridwatch.records.run import Phase
from hybridwatch.records.store import write_run
from hybridwatch.scenarios.load import load_scenario
from tests.builders import a_run, with_failures
from tests.dashboard.parity import words_of
from tests.unit.pages.suite_stores import EQUAL, KNOWN_BAD, UPGRADE, WRONG, notices, put, rows, view

ROOT = Path(__file__).parents[3]
SCENARIOS = ROOT / "scenarios"
CALIBRATION = ROOT / "docs" / "calibration.json"
RECORDED = ROOT / "results"


def knowing(*names: str, **changes) -> Checkout:
    """A checkout with some of our scenarios."""
    found = [load_scenario(SCENARIOS / f"{name}.toml", SCENARIOS) for name in names]
    return Checkout(scenarios={s.id: s.model_copy(update=changes) for s in found})


def said(document) -> str:
    return "\n".join(words_of(document))


def facts(document) -> dict[str, str]:
    (found,) = (block for block in document.blocks if type(block).__name__ == "Facts")
    return dict(found.rows)


def told(metric: str, verdict: Verdict) -> ControlReading:
    return ControlReading(metric, "value", verdict, 0.0, 1.0)


BROKEN = [("accuracy.x", Verdict.REGRESSION), ("ttft", Verdict.EQUIVALENT)]
SLOW = [("contract.x", Verdict.EQUIVALENT), ("ttft", Verdict.REGRESSION)]


@pytest.mark.parametrize(
    ("comparisons", "deadly", "detection"),
    [
        ([("contract.x", Verdict.REGRESSION)], False, Detection.CAUGHT),
        (BROKEN, False, Detection.CAUGHT),
        (SLOW, False, Detection.MISSED),
        ([("accuracy.x", Verdict.INCONCLUSIVE)], False, Detection.MISSED),
        ([("accuracy.x", Verdict.IMPROVEMENT)], False, Detection.MISSED),
        ([("contract.x", Verdict.FAILED)], False, Detection.MISSED),
        ([("contract.x", Verdict.FAILED)], True, Detection.CAUGHT),
        ([("contract.x", Verdict.EQUIVALENT)], True, Detection.MISSED),
        ([("ttft", Verdict.REGRESSION)], False, Detection.NOT_ASKED),
        ([("accuracy.x", Verdict.NOT_COMPARABLE)], False, Detection.NOT_ASKED),
        ([("unheard-of", Verdict.REGRESSION)], False, Detection.NOT_ASKED),
        ([], True, Detection.NOT_ASKED),
    ],
)  # fmt: skip
def test_contracts_and_answers_tell_and_times_do_not(comparisons, deadly, detection) -> None:
    deterministic = [
        one.verdict for one in (told(*each) for each in comparisons) if one.is_deterministic
    ]
    assert find_detection(deterministic, deadly=deadly) is detection


def test_an_empty_store_is_a_state_of_its_own(tmp_path: Path) -> None:
    document = view(tmp_path, "sees")
    assert "make run" in said(document)
    assert facts(document) == {
        "Known-bad controls caught": "none run",
        "Scenarios without a control run": "0",
        "A/A runs with a false alarm": "none run",
        "Promises of the rules kept": "not measured",
    }
    assert "There is no docs/calibration.json" in said(document)
    assert notices(document) == []


def test_a_caught_control_says_by_what(tmp_path: Path) -> None:
    run = put(tmp_path, 1, broken=312.0, answers=WRONG, builds=KNOWN_BAD)
    document = view(tmp_path, "sees", knowing("smoke/padded-graph-rows", "smoke/dummy-run"))
    assert rows(document, "Newest known-bad controls") == [
        [
            "equivalent caught",
            f"smoke/padded-graph-rows|{KNOWN_BAD[1].label}",
            "padded_rows_prefilling 0 → 312",
            "recall 100.0 % → 0.0 %",
            f"29 d ago|run\N{NO-BREAK SPACE}{run}",
        ]
    ]
    assert facts(document)["Known-bad controls caught"] == "1 of 1"
    waiting = rows(document, "Scenarios without a control run")
    assert waiting == [["smoke/dummy-run", "stale-block-table-finished-rows"]]
    assert notices(document) == []


def test_a_planted_control_that_is_not_caught_is_loud_and_first(tmp_path: Path) -> None:
    put(tmp_path, 1, broken=312.0, builds=KNOWN_BAD)
    put(tmp_path, 2, broken=312.0, builds=KNOWN_BAD, scenario="smoke/a")
    put(tmp_path, 3, slower=3.0, builds=KNOWN_BAD)
    document = view(tmp_path, "sees")
    (loud,) = notices(document)
    assert (loud.quiet, loud.title) == (False, "1 known-bad control not caught")
    seen = rows(document, "Newest known-bad controls")
    assert [row[0] for row in seen] == [
        "failed not caught",
        "equivalent caught",
    ]
    assert seen[0][2:4] == ["no contract broken", "no answers lost"]
    assert facts(document)["Known-bad controls caught"] == "1 of 2"


def test_a_run_without_a_fix_that_its_scenario_does_not_guard_is_no_control(tmp_path: Path) -> None:
    put(tmp_path, 1, builds=KNOWN_BAD, scenario="smoke/dummy-run")
    index = open_index(tmp_path)
    assert list_controls(index, knowing("smoke/dummy-run").scenarios) == ()
    of_v2 = knowing("smoke/dummy-run", fix_v2="padded-rows-prefilling").scenarios
    for scenarios in ({}, of_v2):
        (control,) = list_controls(index, scenarios)
        assert control.detection is Detection.MISSED


def test_an_engine_that_must_die_is_caught_by_its_death(tmp_path: Path) -> None:
    run = a_run({"contract.x": (0.0, 0.0)}, {}, builds=KNOWN_BAD)
    write_run(tmp_path, with_failures(run, 1, Phase.CONTRACT, 2))
    index = open_index(tmp_path)
    name = "smoke/padded-graph-rows"
    sights = {
        harm: list_controls(index, knowing(name, harm=harm).scenarios)[0].detection
        for harm in ("death", "answers")
    }
    assert sights == {"death": Detection.CAUGHT, "answers": Detection.MISSED}


def test_a_newer_run_of_times_alone_does_not_hide_what_was_seen(tmp_path: Path) -> None:
    put(tmp_path, 1, broken=3.0, builds=KNOWN_BAD)
    write_run(
        tmp_path, a_run({"ttft": (0.1, 0.1)}, {"ttft": (0.1, 0.1)}, builds=KNOWN_BAD, id="0badcafe")
    )
    seen = rows(view(tmp_path, "sees"), "Newest known-bad controls")
    assert [row[0] for row in seen] == ["equivalent caught"]


def test_false_alarms_are_counted_over_equal_sides_alone(tmp_path: Path) -> None:
    for number in range(9):
        put(tmp_path, number, builds=EQUAL)
    alarmed = put(tmp_path, 9, slower=2.0, builds=EQUAL)
    put(tmp_path, 10, slower=2.0, builds=UPGRADE)
    put(tmp_path, 11, slower=2.0, broken=1.0, builds=KNOWN_BAD)
    document = view(tmp_path, "sees")
    # Wilson's interval of 1 in 10 is 0.0179 to 0.4042.
    assert facts(document)["A/A runs with a false alarm"] == "1 of 10 (10.0 %, 1.8 to 40.4 %)"
    (row,) = rows(document, "Newest false alarms")
    assert row[2] == "ttft median, ttft p99"
    assert row[3].endswith(alarmed)


def test_calibration_is_shown_as_the_file_has_it(tmp_path: Path) -> None:
    found = read_calibration(CALIBRATION)
    assert found is not None
    figures = [f for s in json.loads(CALIBRATION.read_text())["sections"] for f in s["figures"]]
    bounded = [figure for figure in figures if figure["bound"] is not None]
    document = view(tmp_path, "sees", Checkout(calibration=lambda: found))
    listed = rows(document, "What was promised of the rules")
    assert [row[1] for row in listed] == [figure["what"] for figure in bounded]
    assert [row[0] == "\u2714 yes" for row in listed] == [figure["met"] for figure in bounded]
    assert len(words_of(document)) > 5 * len(figures)
    assert found.command in said(document)


def test_a_promise_that_is_not_kept_is_loud(tmp_path: Path) -> None:
    broken = Figure(
        "x", "no change called one", 0.2, 0.1, 0.3, 100, bound=Bound(0.05, FigurePromise.MOST)
    )
    found = Calibration("python -m x", (("One", (broken, replace(broken, value=0.01))),))
    document = view(tmp_path, "sees", Checkout(calibration=lambda: found))
    (loud,) = notices(document)
    assert (loud.quiet, loud.title) == (False, "1 promise not kept")
    assert loud.lines == ("no change called one: 20.0 %, at most 5.0 %",)
    assert facts(document)["Promises of the rules kept"] == "1 of 2"


def test_a_calibration_that_cannot_be_read_is_loud_and_the_rest_is_shown(tmp_path: Path) -> None:
    put(tmp_path, 1, broken=3.0, builds=KNOWN_BAD)
    path = tmp_path / "calibration.json"
    path.write_text("{")
    document = view(tmp_path, "sees", Checkout(calibration=lambda: read_calibration(path)))
    (loud,) = notices(document)
    assert (loud.quiet, loud.title) == (False, "The calibration cannot be read")
    assert len(rows(document, "Newest known-bad controls")) == 1


def test_there_may_be_no_calibration(tmp_path: Path) -> None:
    assert read_calibration(tmp_path / "none.json") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "expected a calibration as JSON"),
        ("[]", "no calibration"),
        ('{"schema_version": 2}', "expected 1, found 2"),
        ('{"schema_version": 1, "command": "x", "sections": [{}]}', "'title'"),
    ],
)
def test_a_calibration_that_is_none_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(text)
    with pytest.raises(ExportError, match=words):
        read_calibration(path)


def test_numbers_that_were_never_known_are_not_made_up(tmp_path: Path) -> None:
    content = json.loads(CALIBRATION.read_text())
    content["sections"][0]["figures"][0].update(value=None, low=None, high=None, simulations=0)
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps(content))
    document = view(
        tmp_path / "results", "sees", Checkout(calibration=lambda: read_calibration(path))
    )
    first = rows(document, "What was promised of the rules")[0]
    assert first[0] == "\u2716 no"
    assert first[2:4] == ["-", "- to -"]


def test_the_committed_controls_are_all_caught(tmp_path: Path) -> None:
    (tmp_path / "records").symlink_to(RECORDED / "records")
    known = Checkout(
        scenarios={s.stem: load_scenario(s, SCENARIOS) for s in SCENARIOS.glob("smoke/*.toml")}
    )
    scenarios = {scenario.id: scenario for scenario in known.scenarios.values()}
    controls = list_controls(open_index(tmp_path), scenarios)
    known_bad = [control for control in controls if control.role is Role.KNOWN_BAD]
    assert len(known_bad) >= 3
    assert {control.detection for control in known_bad} == {Detection.CAUGHT}
