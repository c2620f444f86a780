"""A trial fails with as much of its log as a record may hold: else the whole run would be lost."""

from dataclasses import replace
from pathlib import Path

import pytest

from hybridwatch.engines.builds import parse_label
from hybridwatch.errors import EngineError, MeasurementError
from hybridwatch.measurement import session
from hybridwatch.measurement.session import Session, SessionRequest
from hybridwatch.records.codec import encode
from hybridwatch.records.fields import LONGEST_LOG, LONGEST_TEXT
from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home
from tests.builders import a_run


class Dying:
    """Stands in for an engine pool whose engine never becomes ready."""

    def __init__(self, error):
        self._error = error

    def make_ready(self, _side):
        raise self._error

    def is_alive(self, _side):
        return False

    def discard(self, _side):
        """There is nothing to give up."""


@pytest.mark.parametrize(
    "error",
    [
        EngineError("e" * 2 * LONGEST_TEXT, "l" * 2 * LONGEST_LOG + "the last line"),
        MeasurementError("e" * 2 * LONGEST_TEXT + "\n" + "l" * 2 * LONGEST_LOG + "the last line"),
    ],
    ids=["engine", "measurement"],
)
def test_failed_trial_with_lines_of_any_length_can_be_kept(tmp_path, error):
    (scenario,) = find(home() / "scenarios", ["smoke/padded-graph-rows"])
    sides = (parse_label("cpu-0.27.1"),)
    made = Session(SessionRequest(scenario, sides, Path("models"), print), tmp_path)
    (trial,) = made._trials(Dying(error), made._plan[:1])  # type: ignore[arg-type]
    assert trial.failure is not None
    assert trial.failure.log_tail.endswith("the last line"), "what was said last is kept"
    run = a_run({"ttft": [1.0]})
    assert encode(replace(run, trials=(replace(trial, index=0),))).record


class Dead(Dying):
    """Stands in for an engine pool whose engine has died since it was made ready."""

    def make_ready(self, _side):
        """It was there."""

    def running(self, _side):
        raise self._error


def test_where_engine_and_client_both_ended_the_engine_is_the_cause(tmp_path, monkeypatch):
    """lm-eval ends with a traceback of its own when nobody answers any more."""

    def no_answer(*_):
        raise MeasurementError("lm-eval ended with status 1: cannot connect")

    monkeypatch.setattr(session, "measure", no_answer)
    (scenario,) = find(home() / "scenarios", ["smoke/padded-graph-rows"])
    request = SessionRequest(scenario, (parse_label("cpu-0.27.1"),), Path("models"), print)
    made = Session(request, tmp_path)
    pool = Dead(EngineError("engine ended during a trial", "RuntimeError: of its own"))
    (trial,) = made._trials(pool, made._plan[:1])  # type: ignore[arg-type]
    assert trial.failure is not None
    assert trial.failure.engine_died
    assert trial.failure.log_tail == "RuntimeError: of its own"
    assert trial.failure.reason == "engine ended during a trial: RuntimeError: of its own"
