"""One fix, switched in and out, and what was seen of it; and calls that fit every release."""

import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from hybridwatch_engine.fixes.fix import Behaviour, Exercise
from hybridwatch_engine.fixes.registry import FIXES, Switchboard


def call_with_known(function: Callable[..., Any], **arguments: Any) -> Any:
    """Call with those of the arguments that the function of this release has."""
    known = inspect.signature(function).parameters
    return function(**{name: value for name, value in arguments.items() if name in known})


class Plain(SimpleNamespace):
    """Something of the engine's without features: what a release asks for beyond its names is off.

    What can be switched on differs from release to release, and makes no difference here.
    """

    def __getattr__(self, name: str) -> bool:
        """Say no to every feature; Python's own questions have no answer."""
        if name.startswith("__"):
            raise AttributeError(name)
        return False


EXERCISES: Final[dict[str, Exercise]] = {
    fix_id: fix.exercise for fix_id, fix in FIXES.items() if fix.exercise is not None
}
"""By fix; a fix made of parts is seen by its parts."""


class NotBuiltError(Exception):
    """What an exercise runs is compiled, and not a part of this engine."""


@dataclass(frozen=True, slots=True)
class ExerciseOutcome:
    """What came of an exercise.

    Attributes:
        native: State that the probe found in the release.
        with_fix: What was seen with the fix; None when it could not be seen.
        without_fix: What was seen without it.
        ok: Both were as expected and the release was as before afterwards; also when the fix means
            nothing to the release, or can be neither switched nor seen in it.
        error: What kept the exercise from its end.
        unseen: Why there was nothing to exercise, where that is as it must be.
    """

    native: str
    with_fix: Behaviour | None = None
    without_fix: Behaviour | None = None
    ok: bool = False
    error: str = ""
    unseen: str = ""

    def to_json(self) -> dict[str, Any]:
        """The outcome as it is printed."""
        found = {
            "native": self.native,
            "with": self.with_fix,
            "without": self.without_fix,
            "ok": self.ok,
        }
        words = {"error": self.error, "unseen": self.unseen}
        return {**found, **{name: text for name, text in words.items() if text}}


def attempt(board: Switchboard, fix_id: str, exercise: Exercise) -> ExerciseOutcome:
    """Exercise a fix and leave the release as it was."""
    native = board.states()[fix_id]
    if native == "not-applicable":
        return ExerciseOutcome(native, ok=True)
    fix = FIXES[fix_id]
    if (fix.revert if native == "present" else fix.apply) is None:
        verb = "taken out of" if native == "present" else "put into"
        return ExerciseOutcome(native, ok=True, unseen=f"cannot be {verb} this release")
    try:
        return _observed(board, fix_id, exercise, native)
    except NotBuiltError as error:
        return ExerciseOutcome(native, ok=True, unseen=str(error))
    except Exception as error:  # noqa: BLE001 - engine code may fail in any way; the rest goes on
        return ExerciseOutcome(native, error=f"{type(error).__name__}: {error}")


def _observed(board: Switchboard, fix_id: str, exercise: Exercise, native: str) -> ExerciseOutcome:
    is_native = native == "present"
    observe: Callable[[], Behaviour] = pkgutil.resolve_name(exercise.observe)
    before = observe()
    try:
        board.switch(fix_id, not is_native)
        switched = observe()
    finally:
        board.switch(fix_id, is_native)
    seen, missed = (before, switched) if is_native else (switched, before)
    as_expected = (seen, missed) == (exercise.with_fix, exercise.without_fix)
    restored = board.states()[fix_id] == native and observe() == before
    return ExerciseOutcome(
        native,
        seen,
        missed,
        ok=as_expected and restored,
        error="" if restored else "the release is not as it was before",
    )
