"""What is kept of checks of live engines, how it counts, and which reports are none."""

import json

import pytest

from hybridwatch.analysis.control import ENGINE_DIED
from hybridwatch.cli.subjects import chosen
from hybridwatch.errors import MeasurementError
from hybridwatch.records.store.files import append_entry, read_entries
from hybridwatch_lab.mutants.table import HEALTHY, MutantState
from hybridwatch_lab.server_check.__main__ import healthy_side
from hybridwatch_lab.server_check.runner import read_report
from hybridwatch_lab.server_check.table import (
    CheckCell,
    list_candidates,
    markdown,
    sum_up,
    table_file,
)
from tests.unit.mutants.cells import MEASURED, a_cell

KILLED, SURVIVED = MutantState.KILLED, MutantState.SURVIVED


def a_check(fault, *relations, scenario="smoke/dummy-run", **changes):
    state = changes.pop("state", KILLED if relations else SURVIVED)
    cell = a_cell(fault, state, scenario=scenario, metrics=relations, **changes)
    return CheckCell(**cell.model_dump(), minutes=0.25, requests=40)


def a_report(*broke):
    one = {"said": "a prompt beside 7 others: token 3 is 'r' instead of 's'", "curl": []}
    relations = [{"name": name, "outcome": "broke", "breaks": [one]} for name in broke]
    return json.dumps({"requests": 12, "broke": broke, "relations": relations})


def test_every_check_of_a_healthy_engine_is_kept_and_one_of_each_fault(tmp_path):
    path = table_file(tmp_path, "cpu-0.27.1")
    checks = [
        a_check(HEALTHY),
        a_check(HEALTHY, measured_at=MEASURED.replace(hour=13)),
        a_check("unzeroed-state"),
        a_check("unzeroed-state", "company"),
    ]
    for one in checks:
        append_entry(path, one)
    assert read_entries(path, CheckCell) == [*checks[:2], checks[3]]


def test_a_fault_counts_once_and_one_that_changed_nothing_not_at_all():
    cells = [
        a_check(HEALTHY),
        a_check("~stale-block-table", "cached", "company"),
        a_check("unzeroed-state"),
        a_check("unzeroed-state", "company", scenario="smoke/padded-graph-rows"),
        a_check("not-swapped"),
        a_check("keys-one-early", state=MutantState.NOT_REACHED),
    ]
    assert list(sum_up(cells)) == [
        "cpu-0.27.1, healthy: 0 alarms in 1 checks of 1 settings",
        "cpu-0.27.1, fixes taken out: 1 of 1 named",
        "cpu-0.27.1, mutants that changed something: 1 of 2 named",
    ]
    assert markdown(cells).splitlines()[2:5] == [
        "| cpu-0.27.1 | `~stale-block-table` | smoke/dummy-run | cached, company |",
        "| cpu-0.27.1 | `unzeroed-state` | smoke/padded-graph-rows | company (1 of 2) |",
        "| cpu-0.27.1 | `not-swapped` | smoke/dummy-run | **not seen** |",
    ]


def test_a_blamed_healthy_engine_is_counted():
    assert next(sum_up([a_check(HEALTHY, "drift"), a_check(HEALTHY)])) == (
        "cpu-0.27.1, healthy: 1 alarms in 2 checks of 1 settings"
    )


def test_mutants_that_a_client_can_see_are_tried_where_they_are_known_to_act_first():
    cells = [
        a_cell("elsewhere", scenario="smoke/dummy-run"),
        a_cell("slow", metrics=("tpot",)),
        a_cell("here"),
        a_cell("dead", metrics=(ENGINE_DIED,)),
        a_cell("quiet", SURVIVED),
        a_cell(HEALTHY),
    ]
    assert list_candidates(cells, "smoke/padded-graph-rows") == ["here", "dead", "elsewhere"]


def test_a_report_names_relations_and_the_first_break_of_each():
    read = read_report(1, a_report("company", "cached"))
    assert read.kill.metrics == ("company", "cached")
    assert read.kill.detail.startswith(
        "company: a prompt beside 7 others: token 3 is 'r' instead of 's'; cached: "
    )
    assert not read_report(0, a_report()).kill
    assert read_report(2, "", "no answer").kill.metrics == (ENGINE_DIED,)


@pytest.mark.parametrize(
    ("status", "output"),
    [(0, a_report("company")), (1, a_report()), (1, "Traceback"), (0, '{"requests": 1}')],
)
def test_a_report_that_contradicts_itself_is_none(status, output):
    with pytest.raises(MeasurementError):
        read_report(status, output)


def test_a_fix_that_the_release_needs_is_switched_once():
    build = "cpu-0.31.0+v1"
    (scenario,) = chosen(("reported/i57720-one-token-prompt",), (build,))
    switches = healthy_side(build, scenario).label.split("+")
    assert switches.count("one-token-prompt") == 1
