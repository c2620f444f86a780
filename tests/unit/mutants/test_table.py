"""The kill table: which mutants there are, what is kept of them, and how they count."""

import dataclasses
import json

import pytest
from hybridwatch_engine.mutants.board import header_from, mutant_headers, patches_of
from hybridwatch_engine.mutants.tally import Tally

from hybridwatch.errors import RecordError, ScenarioError
from hybridwatch.scenarios.fixes import MECHANISMS, load_mutants
from hybridwatch_lab.in_engine import MUTANTS, SETTINGS
from hybridwatch_lab.mutants.judging import Kill, find_state
from hybridwatch_lab.mutants.table import (
    HEALTHY,
    MOST_COLUMNS,
    MutantState,
    append_cell,
    catalogue,
    compute_score,
    false_alarms,
    halves,
    markdown,
    read_cells,
    render_kill,
    score_lines,
    table_file,
)
from tests.unit.mutants.cells import a_cell, a_mutant

THE_EIGHT = (
    "unzeroed-state",
    "condensed-crosswise",
    "continued-window-late",
    "hit-block-before",
    "decode-dt-bias",
    "decode-state-unwritten",
    "resumed-without-state",
    "seed-ignored",
)


@pytest.fixture(autouse=True)
def told(monkeypatch):
    """This process is told of the mutants as an engine is."""
    monkeypatch.setenv("HYBRIDWATCH_ENGINE", json.dumps(SETTINGS))
    mutant_headers.cache_clear()
    yield
    mutant_headers.cache_clear()


def table(**changes: object) -> str:
    keys = {
        "half": '"first"',
        "mechanism": '"dtype"',
        "target": '["a:b"]',
        "by": '"cost.twice"',
        "resembles": '"made up"',
        "what": '"Nothing."',
    }
    return "[mutant.one]\n" + "\n".join(f"{k} = {v}" for k, v in {**keys, **changes}.items())


def test_there_are_forty_mutants_and_the_faults_of_the_start_come_first():
    assert len(catalogue()) >= 40
    assert tuple(catalogue())[: len(THE_EIGHT)] == THE_EIGHT


def test_every_mechanism_has_a_mutant():
    assert {one.mechanism for one in catalogue().values()} == set(MECHANISMS)


def test_no_half_is_twice_the_other():
    first, second = (len(half) for half in halves(catalogue()).values())
    assert first + second == len(catalogue())
    assert max(first, second) <= 2 * min(first, second)


def test_harness_and_plugin_read_the_same_mutants():
    theirs, ours = mutant_headers(), catalogue()
    assert list(theirs) == list(ours)
    for name, header in theirs.items():
        assert header.phase == ours[name].phase
        assert header.target == ours[name].target


def test_an_engine_that_has_none_named_has_none(monkeypatch):
    monkeypatch.delenv("HYBRIDWATCH_ENGINE")
    mutant_headers.cache_clear()
    assert mutant_headers() == {}


def test_every_mutant_has_code_that_takes_its_parameters():
    headers = mutant_headers()
    refused = {}
    for name in catalogue():
        try:
            made = patches_of(dataclasses.replace(headers[name], target=()), Tally())
        except ValueError as error:
            refused[name] = str(error)
        else:
            assert not made.in_place, name
    assert refused == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"half": '"third"'}, "half"),
        ({"mechanism": '"magic"'}, "mechanism: expected one of slot lifetime"),
        ({"wat": "1"}, "wat"),
    ],
)
def test_a_wrong_key_is_refused_by_name(tmp_path, changes, message):
    (tmp_path / "first.toml").write_text(table(**changes), encoding="utf-8")
    with pytest.raises(ScenarioError, match=rf"first.toml: .*{message}"):
        load_mutants(tmp_path / "first.toml")


def test_what_changes_a_mutant_changes_its_digest():
    one = catalogue()["decode-dt-bias"]
    assert one.model_copy(update={"parameters": {"plus": 0.25}}).digest != one.digest
    assert one.model_copy(update={"what": "Other words."}).digest == one.digest


def keys(**changes: object) -> dict[str, object]:
    header = mutant_headers()["unzeroed-state"]
    names = ("half", "mechanism", "target", "by", "resembles", "what", "parameters")
    return {**{name: getattr(header, name) for name in names}, **changes}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"by": "nowhere.at_all"}, r"by: expected module.function of .*, found nowhere.at_all"),
        ({"by": "cost.nothing"}, r"by: expected module.function of .*, found cost.nothing"),
        ({"parameters": {"wat": 1}}, r"parameters: expected those of state_flags.begun"),
    ],
)
def test_code_that_is_not_there_is_refused_by_file_and_key(changes, message):
    header = header_from("one", keys(**changes), "first.toml: mutant.one", MUTANTS)
    with pytest.raises(ValueError, match=r"first.toml: mutant.one." + message):
        patches_of(header, Tally())


def test_a_header_without_a_key_is_refused():
    lacking = {key: value for key, value in keys().items() if key != "by"}
    with pytest.raises(ValueError, match=r"mutant.one.by: expected a value, found none"):
        header_from("one", lacking, "first.toml: mutant.one", MUTANTS)


@pytest.fixture
def path(tmp_path):
    return table_file(tmp_path, "cpu-0.27.1")


def test_no_file_is_an_empty_table(path):
    assert read_cells(path) == []


def test_the_newest_cell_of_a_mutant_and_scenario_counts(path):
    cells = [a_cell("a", MutantState.SURVIVED), a_cell("b"), a_cell("a", MutantState.KILLED)]
    for cell in cells:
        append_cell(path, cell)
    assert read_cells(path) == cells[1:]


def test_a_cut_line_is_left_out_and_takes_no_later_one_with_it(path):
    append_cell(path, a_cell("a"))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"mutant": "b", "sce')
    assert read_cells(path) == [a_cell("a")]
    append_cell(path, a_cell("c"))
    assert read_cells(path) == [a_cell("a"), a_cell("c")]


def test_a_line_that_is_no_cell_is_refused_by_file_line_and_key(path):
    append_cell(path, a_cell("a"))
    line = path.read_text(encoding="utf-8").replace('"killed"', '"slain"')
    path.write_text(line + line, encoding="utf-8")
    with pytest.raises(RecordError, match=r"cpu-0.27.1.jsonl:1: state: "):
        read_cells(path)


LETTERED = {name: a_mutant() for name in "abcde"}
KILL = Kill(("contract.wrong_tokens",), "contract.wrong_tokens 0 -> 9")


def test_one_scenario_is_enough_to_kill():
    cells = [
        a_cell("a", MutantState.SURVIVED),
        a_cell("a", MutantState.KILLED, scenario="smoke/dummy-run"),
        a_cell("b", MutantState.SURVIVED),
        a_cell("b", MutantState.NOT_REACHED, scenario="smoke/dummy-run"),
    ]
    score = compute_score(cells, LETTERED)
    assert (score.killed, score.survivors) == (("a",), ("b",))
    assert score.share == 0.5


def test_a_table_that_lacks_mutants_says_so():
    whole = [a_cell(name) for name in LETTERED]
    assert "PARTIAL: 4 of 5 mutants are in the table" in score_lines(whole[1:], LETTERED)
    assert not any("PARTIAL" in line for line in score_lines(whole, LETTERED))


def test_equivalent_and_unreached_mutants_count_neither_for_nor_against():
    cells = [
        a_cell("a"),
        a_cell("b", MutantState.EQUIVALENT),
        a_cell("c", MutantState.NOT_REACHED),
        a_cell("d", MutantState.NOT_MEASURED),
    ]
    score = compute_score(cells, LETTERED)
    assert score.share == 1.0
    assert score.reach == 2 / 3
    assert (score.equivalent, score.unreached, score.unmeasured) == (("b",), ("c",), ("d",))


def test_a_table_without_a_reached_mutant_has_no_share():
    score = compute_score([a_cell("a", MutantState.NOT_REACHED)], LETTERED)
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
    assert any(line.startswith("FALSE ALARM") for line in score_lines([ill], LETTERED))


def test_a_cell_says_what_killed_and_in_how_many_seconds():
    assert render_kill(a_cell("a", seconds=3.4)) == "wrong_tokens, 3 s"
    assert render_kill(a_cell("a", MutantState.NOT_REACHED)) == "not reached"
    assert render_kill(None) == ""


def test_the_page_has_a_row_for_each_measured_mutant():
    table = markdown([a_cell(HEALTHY, MutantState.SURVIVED), a_cell("b")], LETTERED)
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
        line.strip("| ").split(" | ") for line in markdown(cells, LETTERED).splitlines()[2:]
    )
    assert healthy[-2:] == ["nothing found", "6 scenarios"]
    assert killed[-3:] == ["wrong_tokens, 4 s", "smoke/s1", "2 of 3"]
    assert idle[3:4] == ["not reached"]


def test_a_false_alarm_in_one_of_many_scenarios_is_what_the_table_shows():
    columns = [f"smoke/s{number}" for number in range(MOST_COLUMNS + 1)]
    cells = [a_cell(HEALTHY, MutantState.SURVIVED, scenario=name) for name in columns]
    alarm = a_cell(HEALTHY, scenario=columns[-1])
    assert "FALSE ALARM: contract.wrong_tokens" in markdown([*cells[:-1], alarm], LETTERED)
