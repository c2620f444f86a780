"""``hybridwatch mutants --show``: what the table says, without an engine."""

import json

from hybridwatch_lab.mutants.table import HEALTHY, MutantState, append_cell, table_file
from tests.command_line import run_verb
from tests.unit.mutants.cells import a_cell


def shown(results, *cells, arguments=(), status=None):
    for cell in cells:
        append_cell(table_file(results, "cpu-0.32.0+v2"), cell)
    command = ["mutants", "--show", "--results", str(results), *arguments]
    return run_verb(*command, status=status)


def test_no_table_is_shown_as_one_without_mutants(tmp_path):
    assert "0 killed of 0 reached" in shown(tmp_path, status=0).stdout


def test_the_table_names_killers_and_survivors(tmp_path):
    done = shown(
        tmp_path,
        a_cell("unzeroed-state", seconds=3.4),
        a_cell("decode-dt-bias", MutantState.SURVIVED),
        arguments=["--markdown"],
        status=0,
    )
    assert "| `unzeroed-state` | first | slot lifetime | wrong_tokens, 3 s |" in done.stdout
    assert "- survivors: decode-dt-bias" in done.stdout
    assert "- first half: 1 killed of 2 reached (50%)" in done.stdout


def test_a_half_can_be_shown_alone(tmp_path):
    cells = a_cell("unzeroed-state"), a_cell("decode-dt-bias-slight")
    done = shown(tmp_path, *cells, arguments=["--json", "--half", "second"])
    said = json.loads(done.stdout)
    assert [cell["mutant"] for cell in said["cells"]] == ["decode-dt-bias-slight"]
    assert said["score"]["together"]["killed_of_reached"] == 1.0


def test_a_false_alarm_is_bad_news(tmp_path):
    done = shown(tmp_path, a_cell(HEALTHY, detail="contract.wrong_tokens 0 -> 2"), status=1)
    assert "FALSE ALARM: smoke/padded-graph-rows" in done.stdout


def test_an_unknown_mutant_is_refused_with_the_known_ones(tmp_path):
    done = shown(tmp_path, arguments=["--only", "nobody"], status=2)
    assert "--only: expected one of unzeroed-state" in done.stderr
