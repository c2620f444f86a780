"""What the index tells about a store is what alerts and gaps are derived from."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import update

from hybridwatch.analysis.alert_timeline import TransitionKind
from hybridwatch.analysis.alerts import Status
from hybridwatch.analysis.policy import Action, Policy
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.database.schema import VERDICT
from hybridwatch.history.alerts import find_gaps, judged_from
from hybridwatch.history.checkout import Checkout
from hybridwatch.records.identity import FixState
from hybridwatch.records.store import write_run
from tests.builders import BASELINE, CONTENDER, NIGHTLY, STARTED, a_build, a_run
from tests.unit.analysis.alerts.builders import build_alerts, noon
from tests.unit.database.stores import add, opened

UPGRADE = (BASELINE, NIGHTLY)
APPLIED = a_build("cpu-0.26.0+x", fixes={"x": FixState.APPLIED})
LACKING = a_build("cpu-0.26.0", fixes={"x": FixState.LACKING})


def alerts(results):
    return build_alerts(judged_from(opened(results).index), {}, noon(30))


def test_a_store_tells_the_whole_history_of_an_alert(tmp_path) -> None:
    for number, slower in enumerate((1.0, 2.0, 2.0, 0.5, 2.0)):
        add(tmp_path, number, slower=slower, builds=UPGRADE)
    (median,) = alerts(tmp_path)
    assert (median.status, median.rank) == (Status.OPEN, Action.BLOCK)
    assert [(transition.change, transition.by.run_id) for transition in median.transitions] == [
        (TransitionKind.OPENED, "00000001"),
        (TransitionKind.RESOLVED, "00000003"),
        (TransitionKind.REOPENED, "00000004"),
    ]
    assert (median.subject.baseline, median.subject.contender) == (BASELINE.label, "nightly")
    assert median.cause.lead.effect == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize(("lost", "told"), [((6, 0), []), ((6, 6), []), ((24, 0), ["0"])])
def test_answers_lost_by_chance_are_no_news(tmp_path, lost, told) -> None:
    """Six of 120 lost and none won is red by itself; two nights of that are still no change."""
    for number, wrong in enumerate(lost):
        moment = STARTED + timedelta(days=number)
        sides = ({"accuracy.recall": "0" * some + "1" * (120 - some)} for some in (0, wrong))
        write_run(tmp_path, a_run(*sides, id=f"{number:08x}", builds=UPGRADE, started_at=moment))
    judged = judged_from(opened(tmp_path).index)
    red = [one.run_id[-1] for one in judged if one.verdict is Verdict.REGRESSION]
    assert red == [str(number) for number, wrong in enumerate(lost) if wrong]
    assert [alert.opened_by.run_id[-1] for alert in alerts(tmp_path)] == told


def test_matters_without_bad_news_are_left_out(tmp_path) -> None:
    add(tmp_path, 1, slower=2.0, builds=UPGRADE)
    assert {judged.question.metric for judged in judged_from(opened(tmp_path).index)} == {"ttft"}


@pytest.mark.parametrize(
    ("builds", "told"),
    [
        (UPGRADE, True),
        ((BASELINE, BASELINE), True),
        ((CONTENDER, BASELINE), True),
        ((BASELINE, CONTENDER), False),
        ((APPLIED, LACKING), False),
        ((APPLIED, replace(LACKING, release="0.26.1")), True),
    ],
)
def test_known_bad_controls_are_left_out(tmp_path, builds, told) -> None:
    add(tmp_path, 1, slower=2.0, builds=builds)
    assert bool(alerts(tmp_path)) is told


def test_an_empty_store_has_no_alerts(tmp_path) -> None:
    assert alerts(tmp_path) == ()


def test_a_regression_that_a_gate_only_warns_of_is_not_sure(tmp_path) -> None:
    add(tmp_path, 1, slower=2.0, builds=UPGRADE)
    index = opened(tmp_path).index
    assert {judged.sure for judged in judged_from(index)} == {True}
    with index.database.writing() as connection:
        connection.execute(update(VERDICT).values(gate=Action.WARN.value))
    assert {judged.sure for judged in judged_from(opened(tmp_path).index)} == {False}


NOW = STARTED + timedelta(days=100)


@pytest.mark.parametrize("expected", [(), ("smoke/padded-graph-rows", "smoke/never")])
def test_an_example_is_never_overdue(tmp_path, expected):
    add(tmp_path, 0)
    checkout = Checkout(policy=Policy(expected=expected))
    assert find_gaps(tmp_path, opened(tmp_path).index, checkout, NOW)
    (tmp_path / "examples.txt").write_text("00000000\n")
    assert find_gaps(tmp_path, opened(tmp_path).index, checkout, NOW) == ()


def test_next_to_an_example_what_was_measured_is(tmp_path):
    for number in range(2):
        add(tmp_path, number)
    (tmp_path / "examples.txt").write_text("00000000\n")
    (gap,) = find_gaps(tmp_path, opened(tmp_path).index, Checkout(), NOW)
    assert gap.last is not None
    assert gap.last.run_id == "00000001"


def test_a_file_of_examples_that_cannot_be_read_hides_nothing(tmp_path):
    add(tmp_path, 0)
    (tmp_path / "examples.txt").write_bytes(b"\xff")
    assert find_gaps(tmp_path, opened(tmp_path).index, Checkout(), NOW)
