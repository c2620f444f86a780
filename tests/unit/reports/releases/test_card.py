"""The card of releases: what it takes in, what it calls unexplained, what differs."""

import pytest

from hybridwatch.errors import RecordError
from hybridwatch.records.store.files import append_entry
from hybridwatch.reports.releases import CellState, cells_file, read_card, render_card
from tests.unit.reports.releases.cells import DYING, PADDED, SCENARIOS, TOKENS, a_cell

ABSENT = {"state": CellState.ABSENT, "detail": "needs vLLM 0.31.0 or older, and this is 0.32.0"}
REASON = f"""
[[reason]]
scenarios = ["smoke/*"]
metrics = ["{TOKENS}"]
runners = ["v1"]
why = "A prompt of one token is replayed."
finding = 2
upstream = "vllm#57720, open"
"""


def card_of(results, *cells, reasons=""):
    for cell in cells:
        append_entry(cells_file(results), cell)
    cells_file(results).parent.mkdir(exist_ok=True)
    cells_file(results).with_name("reasons.toml").write_text(reasons, encoding="utf-8")
    return read_card(results, SCENARIOS)


def missing(card):
    return [(*cell.key[1:], *faults) for cell, faults in card.unexplained()]


def test_a_red_cell_without_a_reason_is_not_explained(tmp_path):
    card = card_of(tmp_path, a_cell(), a_cell("0.31.0", "v2", TOKENS), reasons=REASON)
    assert missing(card) == [("0.31.0", "v2", TOKENS)]
    page = render_card(card)
    assert "**broken [not explained]**" in page
    assert f"- {PADDED} on 0.31.0 V2: {TOKENS}" in page.replace("\\", "")


def test_a_reason_has_its_number_its_finding_and_its_report(tmp_path):
    card = card_of(tmp_path, a_cell("0.31.0", "v1", TOKENS), reasons=REASON)
    assert missing(card) == []
    page = render_card(card)
    assert "**broken [1]**" in page
    assert "1. A prompt of one token is replayed. (finding 2; vllm#57720, open)" in page


def test_scenarios_with_the_same_cells_share_a_row(tmp_path):
    others = [a_cell(scenario=one) for one in ("smoke/chunk-tails", "smoke/dummy-run")]
    lines = render_card(card_of(tmp_path, a_cell("0.32.0", "v2", TOKENS), *others)).splitlines()
    assert "| `smoke/chunk-tails`, `smoke/dummy-run` | clean | owed |" in lines
    assert f"| `{PADDED}` | **broken [not explained]** | owed |" in lines


def test_each_metric_wants_a_reason(tmp_path):
    both = a_cell("0.31.0", "v1", TOKENS, "contract.states_off")
    card = card_of(tmp_path, both, reasons=REASON)
    assert missing(card) == [("0.31.0", "v1", "contract.states_off")]


def test_a_reason_of_one_death_does_not_explain_another(tmp_path):
    told = '[[reason]]\nscenarios = ["*"]\nmetrics = ["failed_trial"]\nwhy = "Dies."\n'
    dead = a_cell(state=CellState.FAILED, detail=DYING)
    assert missing(card_of(tmp_path, dead, reasons=f"{told}says = \"KeyError: 'slots'\"")) == []
    other = card_of(tmp_path, dead, reasons=f'{told}says = "IndexError"')
    assert missing(other) == [("0.32.0", "v2", "failed_trial")]


def test_what_is_not_there_says_since_when(tmp_path):
    card = card_of(tmp_path, a_cell(**ABSENT), a_cell("0.31.0"))
    assert missing(card) == []
    page = render_card(card)
    assert "- smoke/padded-graph-rows: needs vLLM 0.31.0 or older" in page.splitlines()
    assert "clean; then not there, needs vLLM 0.31.0 or older" in page


def test_what_is_alike_is_one_line(tmp_path):
    gone = [
        a_cell(release, runner, **ABSENT)
        for release in ("0.32.0", "0.31.0")
        for runner in ("v2", "v1")
    ]
    page = render_card(card_of(tmp_path, *gone))
    assert page.splitlines().count(f"- {PADDED}: needs vLLM 0.31.0 or older") == 1


def test_neighbours_that_come_out_alike_are_no_difference(tmp_path):
    wrong, dead = (
        a_cell("0.31.0", "v2", TOKENS),
        a_cell("0.30.0", state=CellState.FAILED, detail="x"),
    )
    cells = (a_cell(), a_cell("0.32.0", "v1"), wrong, dead, a_cell("0.29.0", **ABSENT))
    card = card_of(tmp_path, *cells, a_cell("0.28.0", **ABSENT))
    differing = {step: len(found) for step, (_, found) in card.steps()}
    assert differing == {
        (("0.31.0", "v2"), ("0.32.0", "v2")): 1,
        (("0.30.0", "v2"), ("0.31.0", "v2")): 1,
        (("0.29.0", "v2"), ("0.30.0", "v2")): 1,
        (("0.32.0", "v1"), ("0.32.0", "v2")): 0,
    }


def test_a_cell_of_other_work_is_not_shown(tmp_path):
    card = card_of(tmp_path, a_cell(scenario_digest="0" * 64), a_cell("0.9.0"), a_cell("0.10.0"))
    assert card.releases == ("0.10.0", "0.9.0")
    assert "4 of 4 cells" not in render_card(card)


def test_a_reason_with_a_wrong_key_is_named(tmp_path):
    with pytest.raises(RecordError, match=r"reasons.toml: reason.*becuase"):
        card_of(tmp_path, reasons='[[reason]]\nscenarios = ["*"]\nmetrics = ["*"]\nbecuase = ""\n')
