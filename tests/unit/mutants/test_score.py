"""The score: what counts as killed, reached and equivalent over several scenarios."""

import pytest

from hybridwatch_lab.mutants.judging import Kill, find_state
from hybridwatch_lab.mutants.table import (
    HEALTHY,
    MOST_COLUMNS,
    MutantState,
    cell_words,
    compute_score,
    false_alarms,
    markdown,
    score_lines,
)
from tests.unit.mutants.cells import a_cell, a_mutant

MUTANTS = {name: a_mutant() for name in "abcde"}
KILL = Kill(("contract.wrong_tokens",), "contract.wrong_tokens 0 -> 9")


def test_one_scenario_is_enough_to_kill():
    cells = [
        a_cell("a", MutantState.SURVIVED),
        a_cell("a", MutantState.KILLED, scenario="smoke/dummy-run"),
        a_cell("b", MutantState.SURVIVED),
        a_cell("b", MutantState.NOT_REACHED, scenario="smoke/dummy-run"),
    ]
    score = compute_score(cells, MUTANTS)
    assert (score.killed, score.survivors) == (("a",), ("b",))
    assert score.share == 0.5


def test_a_table_that_lacks_mutants_says_so():
    whole = [a_cell(name) for name in MUTANTS]
    assert "PARTIAL: 4 of 5 mutants are in the table" in score_lines(whole[1:], MUTANTS)
    assert not any("PARTIAL" in line for line in score_lines(whole, MUTANTS))


def test_equivalent_and_unreached_mutants_count_neither_for_nor_against():
    cells = [
        a_cell("a"),
        a_cell("b", MutantState.EQUIVALENT),
        a_cell("c", MutantState.NOT_REACHED),
        a_cell("d", MutantState.NOT_MEASURED),
    ]
    score = compute_score(cells, MUTANTS)
    assert score.share == 1.0
    assert score.reach == 2 / 3
    assert (score.equivalent, score.unreached, score.unmeasured) == (("b",), ("c",), ("d",))


def test_a_table_without_a_reached_mutant_has_no_share():
    score = compute_score([a_cell("a", MutantState.NOT_REACHED)], MUTANTS)
    assert (score.share, score.reach) == (None, 0.0)


def test_a_half_counts_its_own_mutants_alone():
    mutants = {"a": a_mutant("first"), "b": a_mutant("second")}
    lines = list(score_lines([a_cell("a"), a_cell("b", MutantState.SURVIVED)], mutants))
    assert lines[0].startswith("first half: 1 killed of 1 reached (100%)")
    assert lines[1].startswith("second half: 0 killed of 1 reached (0%)")
    assert "survivors: b" in lines


@pytest.mark.parametrize(
    ("kill", "reached", "changed", "state"),
    [
        (KILL, 3, 2, MutantState.KILLED),
        (KILL, None, None, MutantState.KILLED),  # the engine died, and took the count with it
        (KILL, 0, 0, MutantState.NOT_REACHED),
        (Kill((), ""), 0, 0, MutantState.NOT_REACHED),
        (Kill((), ""), 3, 0, MutantState.EQUIVALENT),
        (Kill((), ""), 3, 2, MutantState.SURVIVED),
    ],
)
def test_the_counts_say_what_became_of_a_mutant(kill, reached, changed, state):
    assert find_state(a_mutant(), kill, reached, changed) is state


def test_a_mutant_whose_metric_was_not_measured_has_not_survived():
    nothing = Kill((), "")
    assert find_state(a_mutant(), nothing, 3, 3, measured=False) is MutantState.NOT_MEASURED


def test_a_header_may_declare_a_mutant_equivalent():
    mutant = a_mutant(equivalent="It changes an order that nobody reads.")
    assert find_state(mutant, Kill((), ""), 3, 3) is MutantState.EQUIVALENT


def test_what_is_found_without_a_mutant_at_work_is_a_false_alarm():
    ill = a_cell(HEALTHY)
    idle = a_cell("a", MutantState.NOT_REACHED, metrics=("contract.wrong_tokens",))
    assert false_alarms([ill, idle, a_cell("b")]) == (ill, idle)
    assert any(line.startswith("FALSE ALARM") for line in score_lines([ill], MUTANTS))


def test_a_cell_says_what_killed_and_in_how_many_seconds():
    assert cell_words(a_cell("a", seconds=3.4)) == "wrong_tokens, 3 s"
    assert cell_words(a_cell("a", MutantState.NOT_REACHED)) == "not reached"
    assert cell_words(None) == ""


def test_the_page_has_a_row_for_each_measured_mutant():
    table = markdown([a_cell(HEALTHY, MutantState.SURVIVED), a_cell("b")], MUTANTS)
    assert [line.split(" | ")[0] for line in table.splitlines()[2:]] == [
        "| healthy engine",
        "| `b`",
    ]


def test_a_table_of_many_scenarios_has_the_quickest_kill_of_each_mutant():
    columns = [f"smoke/s{number}" for number in range(MOST_COLUMNS + 1)]
    cells = [
        *(a_cell(HEALTHY, MutantState.SURVIVED, scenario=name) for name in columns),
        a_cell("a", scenario=columns[0], seconds=9.0),
        a_cell("a", scenario=columns[1], seconds=4.0),
        a_cell("a", MutantState.SURVIVED, scenario=columns[2]),
        a_cell("a", MutantState.NOT_REACHED, scenario=columns[3]),
        a_cell("b", MutantState.NOT_REACHED, scenario=columns[0]),
    ]
    healthy, killed, idle = (
        line.strip("| ").split(" | ") for line in markdown(cells, MUTANTS).splitlines()[2:]
    )
    assert healthy[-2:] == ["nothing found", "6 scenarios"]
    assert killed[-3:] == ["wrong_tokens, 4 s", "smoke/s1", "2 of 3"]
    assert idle[3:4] == ["not reached"]


def test_a_false_alarm_in_one_of_many_scenarios_is_what_the_table_shows():
    columns = [f"smoke/s{number}" for number in range(MOST_COLUMNS + 1)]
    cells = [a_cell(HEALTHY, MutantState.SURVIVED, scenario=name) for name in columns]
    alarm = a_cell(HEALTHY, scenario=columns[-1])
    assert "FALSE ALARM: contract.wrong_tokens" in markdown([*cells[:-1], alarm], MUTANTS)
