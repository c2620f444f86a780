"""``hybridwatch releases``: what is measured, kept and refused, without an engine."""

from dataclasses import replace
from typing import Any

import pytest

from hybridwatch.cli import releases as verb
from hybridwatch.errors import EngineError, LateEngineError
from hybridwatch.records.run import Failure, Phase
from hybridwatch.records.store.files import append_entry, read_entries
from hybridwatch.reports.releases import CellState, ReleaseCell, cells_file, read_card, render_card
from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home
from tests.builders import a_run, with_failures
from tests.command_line import run_verb
from tests.shipped import ROOT
from tests.unit.reports.releases.cells import DYING, PADDED, TOKENS, a_cell


@pytest.fixture
def engine(monkeypatch):
    """Answers of sessions in turn: a run, or what is raised; each session that was asked for."""
    answers: list[Any] = []
    asked: list[Any] = []

    def run_session(request):
        asked.append(request)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(verb, "require_installed", lambda _: None)
    monkeypatch.setattr(verb, "make_ready", lambda *_: None)
    monkeypatch.setattr(verb, "run_session", run_session)
    return answers, asked


def call(results, *words, build="cpu-0.32.0+v2", status=None):
    command = ["releases", "run", *words, "--build", build, "--results", str(results)]
    return run_verb(*command, catch_exceptions=False, status=status)


def cells_of(results):
    return read_entries(cells_file(results), ReleaseCell)


def contracts(value):
    return a_run({TOKENS: (value,)})


def test_a_cell_has_what_is_not_as_expected_and_is_not_measured_twice(tmp_path, engine):
    answers, asked = engine
    answers += [contracts(2.0)]
    assert "broken: contract.wrong_tokens 2" in call(tmp_path, PADDED).output
    (cell,) = cells_of(tmp_path)
    assert (cell.key, cell.broken) == ((PADDED, "0.32.0", "v2"), {TOKENS: 2.0})
    assert (asked[0].phases, asked[0].scenario.trials.contract) == ({Phase.CONTRACT}, 1)
    call(tmp_path, PADDED)
    assert len(asked) == 1
    answers += [contracts(0.0)]
    call(tmp_path, PADDED, "--anew", "--trials", "2")
    assert [(one.state, one.trials) for one in cells_of(tmp_path)] == [(CellState.CLEAN, 2)]


def test_a_cell_of_a_label_without_a_runner_names_the_one_that_ran(tmp_path, engine):
    answers, _ = engine
    for build in ("cpu-0.32.0", "cpu-0.27.1"):
        answers += [contracts(0.0)]
        call(tmp_path, PADDED, build=build)
    assert [one.key[1:] for one in cells_of(tmp_path)] == [("0.32.0", "v2"), ("0.27.1", "v1")]


def test_an_engine_that_does_not_come_up_is_an_answer_with_its_first_cause(tmp_path, engine):
    engine[0].append(EngineError("it ended", f"(EngineCore pid=7) {DYING}\nRuntimeError: dead"))
    call(tmp_path, PADDED)
    assert [(one.state, one.detail) for one in cells_of(tmp_path)] == [(CellState.FAILED, DYING)]


def test_a_trial_that_gave_nothing_is_one_too(tmp_path, engine):
    run = with_failures(contracts(0.0), 0, Phase.CONTRACT, 1)
    dead = replace(run.trials[-1], failure=Failure("it died", "", engine_died=True))
    engine[0].append(replace(run, trials=(*run.trials[:-1], dead)))
    call(tmp_path, PADDED)
    assert [(one.state, one.detail) for one in cells_of(tmp_path)] == [
        (CellState.FAILED, "it died")
    ]


def test_an_engine_that_is_late_says_nothing_and_is_tried_again(tmp_path, engine):
    engine[0].extend([LateEngineError("not up after 90 s"), contracts(0.0)])
    assert "not kept" in call(tmp_path, PADDED).output
    assert cells_of(tmp_path) == []
    call(tmp_path, PADDED)
    assert len(cells_of(tmp_path)) == 1


def test_what_does_not_apply_is_noted_and_not_measured(tmp_path, engine):
    call(tmp_path, "smoke", "--limit", "0")
    call(tmp_path, "smoke", "--limit", "0")
    assert engine[1] == []
    (cell,) = cells_of(tmp_path)
    assert (cell.scenario, cell.state) == ("smoke/spec-decode-all-cache", CellState.ABSENT)
    assert cell.detail == "needs vLLM 0.31.0 or older, and cpu-0.32.0+v2 is 0.32.0"
    assert len(cells_file(tmp_path).read_text().splitlines()) == 1


def test_a_limit_ends_the_call(tmp_path, engine):
    engine[0].append(contracts(0.0))
    call(tmp_path, "smoke", "--limit", "1")
    assert len(engine[1]) == 1


def test_the_card_is_bad_news_until_every_red_cell_has_its_reason(tmp_path):
    append_entry(cells_file(tmp_path), a_cell("0.32.0", "v2", TOKENS))
    words = ["releases", "card", "--results", str(tmp_path), "--out", str(tmp_path / "card.md")]
    assert f"not explained: {PADDED} 0.32.0 v2: {TOKENS}" in run_verb(*words, status=1).stderr
    reason = '[[reason]]\nscenarios = ["*"]\nmetrics = ["*"]\nwhy = "It is planted."\n'
    cells_file(tmp_path).with_name("reasons.toml").write_text(reason, encoding="utf-8")
    run_verb(*words, status=0)
    assert "1. It is planted." in (tmp_path / "card.md").read_text(encoding="utf-8")


def test_the_card_in_the_docs_is_that_of_the_cells_and_every_red_one_is_explained():
    card = read_card(ROOT / "results", find(home() / "scenarios", []))
    assert (ROOT / "docs" / "releases.md").read_text(encoding="utf-8") == render_card(card)
    assert list(card.unexplained()) == []
