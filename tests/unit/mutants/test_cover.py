"""Which scenarios kill the most mutants in the least time."""

from typing import Final

from hybridwatch.scenarios.load import find
from hybridwatch_lab.mutants.cover import START_S, choose_cover, cover_lines
from hybridwatch_lab.mutants.table import (
    HEALTHY,
    MutantCell,
    MutantState,
    read_cells,
    table_file,
)
from tests.shipped import RESULTS, ROOT, SCENARIOS
from tests.unit.mutants.cells import a_cell


def cells(kills: dict[str, tuple[float, str]]) -> list[MutantCell]:
    """A table: for each scenario seconds of the healthy engine, and a letter for each kill."""
    found: list[MutantCell] = []
    for scenario, (seconds, letters) in kills.items():
        found.append(
            a_cell(HEALTHY, MutantState.SURVIVED, scenario=scenario, seconds=seconds - START_S)
        )
        found += [a_cell(one, scenario=scenario) for one in letters]
        found.append(a_cell("z", MutantState.SURVIVED, scenario=scenario))
    return found


def test_the_scenario_with_the_most_kills_a_second_comes_first() -> None:
    table = cells({"smoke/a": (40, "abc"), "curated/b": (20, "ab"), "curated/c": (400, "abcd")})
    steps = choose_cover(table)
    assert [(one.scenario, one.new, one.killed) for one in steps] == [
        ("curated/b", ("a", "b"), 2),
        ("smoke/a", ("c",), 3),
        ("curated/c", ("d",), 4),
    ]


def test_a_scenario_that_adds_nothing_is_left_out() -> None:
    assert [
        one.scenario for one in choose_cover(cells({"smoke/a": (9, "ab"), "smoke/b": (8, "a")}))
    ] == ["smoke/a"]


def test_lines_name_what_a_group_misses() -> None:
    lines = list(cover_lines(cells({"smoke/a": (20, "abc"), "curated/b": (30, "cd")})))
    assert lines == [
        "curated: 2 of 4 killed (50%); not a, b",
        "smoke: 3 of 4 killed (75%); not d",
        "in order of kills a second:",
        "smoke/a: 3 more in 20 s; 3 of 4 killed (75%), 20 s",
        "curated/b: 1 more in 30 s; 4 of 4 killed (100%), 50 s",
    ]


def test_a_table_without_kills_has_no_cover() -> None:
    assert choose_cover([a_cell("a", MutantState.NOT_REACHED)]) == []


SMOKE: Final = 0.95
"""What smoke is to kill of all that smoke and curated kill (lab/docs/mutants.md)."""


def share_of_smoke(table: list[MutantCell]) -> tuple[int, int]:
    """Mutants that smoke kills, and those that any scenario of the table does."""
    kills = {
        (one.scenario, one.mutant)
        for one in table
        if one.state is MutantState.KILLED and one.mutant != HEALTHY
    }
    smoke = {mutant for scenario, mutant in kills if scenario.startswith("smoke/")}
    return len(smoke), len({mutant for _, mutant in kills})


def test_smoke_kills_what_its_page_says() -> None:
    table = read_cells(table_file(RESULTS, "cpu-0.32.0+v2"))
    shipped = {one.id for one in find(SCENARIOS, ("smoke", "curated"))}
    assert {one.scenario for one in table} <= shipped
    killed, every = share_of_smoke(table)
    assert killed / every >= SMOKE
    page = (ROOT / "lab" / "docs" / "mutants.md").read_text(encoding="utf-8")
    assert f"| {killed} of {every} ({killed / every:.0%})".replace("%)", " %)") in page


def test_a_scenario_that_leaves_smoke_is_noticed() -> None:
    moved = [
        one.model_copy(update={"scenario": "curated/nixl-disagg"})
        if one.scenario == "smoke/nixl-disagg"
        else one
        for one in read_cells(table_file(RESULTS, "cpu-0.32.0+v2"))
    ]
    killed, every = share_of_smoke(moved)
    assert killed / every < SMOKE
