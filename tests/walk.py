"""How far a reader walks from the newest-record lookup to the verdict.

Follows ``findings_for`` on a store of one record of one metric. Between the return of
``read_newest`` and that of ``judge_together``, each function of ``cli``, ``history`` or
``analysis`` that is called out of another module is a stay, counted once. Properties are read where
one stands; reading the file a second time, with its answers, is the store's business.
"""

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import hybridwatch
from hybridwatch.analysis.policy import STRICT
from hybridwatch.history.newest_runs import findings_for
from hybridwatch.records.store import write_run
from tests.builders import RECENT, a_comparison, noisy

_ROOT: Final = str(Path(hybridwatch.__file__).parent) + "/"
_JUDGING: Final = ("analysis", "cli", "history")


class Walk:
    """A profile function that notes the stays, in order."""

    def __init__(self) -> None:
        self.stays: dict[str, None] = {}
        self._inside: list[str] = []
        self._judging = False
        self._properties = set(_properties())

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call":
            self._enter(code)
        elif event == "return" and self._inside:
            self._inside.pop()
            if code.co_name in {"read_newest", "judge_together"}:
                self._judging = code.co_name == "read_newest"

    def _enter(self, code: CodeType) -> None:
        module = code.co_filename.removeprefix(_ROOT) if _ROOT in code.co_filename else ""
        here = next((each for each in reversed(self._inside) if each), "")
        is_named = not code.co_name.startswith(("<", "__"))
        self._inside.append(module if is_named else "")
        is_call = is_named and code not in self._properties and here not in {"", module}
        if self._judging and is_call and module.startswith(_JUDGING):
            self.stays[f"{module} {code.co_qualname}"] = None


def _properties() -> Iterator[CodeType]:
    for found in pkgutil.walk_packages(hybridwatch.__path__, "hybridwatch."):
        if found.name.split(".")[1] in {*_JUDGING, "metrics"}:
            for kind in vars(importlib.import_module(found.name)).values():
                if isinstance(kind, type):
                    members = vars(kind).values()
                    getters = (one.fget for one in members if isinstance(one, property))
                    yield from (code for get in getters if (code := getattr(get, "__code__", None)))


def follow(results: Path) -> list[str]:
    """Judge one record of one metric in an empty folder, and give the stays."""
    sides = ({"tpot": noisy(level, 12, 0.01)} for level in (0.04, 0.052))
    write_run(results, a_comparison(*sides, started_at=RECENT, finished_at=RECENT))
    findings_for((), results, STRICT)  # what a first call imports and fills is no part of it
    walk = Walk()
    sys.setprofile(walk)
    try:
        findings_for((), results, STRICT)
    finally:
        sys.setprofile(None)
    return list(walk.stays)
