"""What an exercise makes of a release in which there is nothing to switch."""

from dataclasses import replace

import pytest
from hybridwatch_engine.fixes.fix import Exercise, Finding
from hybridwatch_engine.fixes.registry import FIXES, Switchboard
from hybridwatch_engine.source import SourceTree
from hybridwatch_engine_lab.exercise.trial import ExerciseOutcome, NotBuiltError, attempt

FIX = "padded-rows-prefilling"


def seen_by(function):
    return Exercise(f"{__name__}:{function.__name__}", {}, {})


def unobservable():
    raise AssertionError("nothing is to be looked at")


def not_built():
    raise NotBuiltError("this engine has no kernel")


@pytest.mark.parametrize(
    ("state", "unseen"),
    [
        ("not-applicable", ""),
        ("lacking", "cannot be put into this release"),
        ("present", "cannot be taken out of this release"),
    ],
)
def test_what_cannot_be_switched_is_reported_and_is_no_fault(monkeypatch, tmp_path, state, unseen):
    stuck = replace(FIXES[FIX], probe=lambda _: Finding(state, "seen"), apply=None, revert=None)
    monkeypatch.setitem(FIXES, FIX, stuck)
    outcome = attempt(Switchboard(SourceTree(tmp_path)), FIX, seen_by(unobservable))
    assert outcome == ExerciseOutcome(state, ok=True, unseen=unseen)
    assert outcome.to_json().get("unseen", "") == unseen


def test_a_fix_that_can_be_switched_is_looked_at(monkeypatch, tmp_path):
    switchable = replace(FIXES[FIX], probe=lambda _: Finding("lacking", "seen"))
    monkeypatch.setitem(FIXES, FIX, switchable)
    outcome = attempt(Switchboard(SourceTree(tmp_path)), FIX, seen_by(unobservable))
    assert outcome.error == "AssertionError: nothing is to be looked at"
    assert not outcome.ok


def test_what_is_not_built_is_reported_and_is_no_fault(monkeypatch, tmp_path):
    monkeypatch.setitem(FIXES, FIX, replace(FIXES[FIX], probe=lambda _: Finding("lacking", "seen")))
    outcome = attempt(Switchboard(SourceTree(tmp_path)), FIX, seen_by(not_built))
    assert outcome == ExerciseOutcome("lacking", ok=True, unseen="this engine has no kernel")
