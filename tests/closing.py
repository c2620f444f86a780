"""What a run of tests says at its end: how many passed, in how many minutes, and what took long."""

import os
import time
from collections import defaultdict
from typing import Final

import pytest

LONGEST: Final = 10
BEGAN: Final = "HYBRIDWATCH_TESTS_BEGAN"
"""Variable with the second at which ``make test`` began, its checks included."""

_REASON: Final = "long"
_UNKNOWN: Final = "no reason given: make it shorter, or mark it `long`"


def carry_reasons(items: list[pytest.Item]) -> None:
    """Let each report say why its test may take long: its nearest mark ``long``."""
    for item in items:
        mark = item.get_closest_marker(_REASON)
        if mark is not None:
            item.user_properties.append((_REASON, mark.args[0]))


class Closing:
    """Adds up what the tests took, on whatever worker, and says so; a plugin of pytest."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._reasons: dict[str, str] = {}
        self._line = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a setup, a call or a teardown to its test."""
        self._seconds[report.nodeid] += report.duration
        self._reasons.update(
            (report.nodeid, str(value)) for name, value in report.user_properties if name == _REASON
        )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List the longest, and count for the line at the very end."""
        if not self._seconds:
            return
        terminalreporter.section(
            f"the {LONGEST} longest, each with the fixtures it is first to need"
        )
        for name in sorted(self._seconds, key=self._seconds.__getitem__, reverse=True)[:LONGEST]:
            reason = self._reasons.get(name, _UNKNOWN)
            terminalreporter.line(f"{self._seconds[name]:6.0f} s  {name}\n          {reason}")
        self._line = _counted(terminalreporter.stats, time.time() - self._began)

    def pytest_unconfigure(self) -> None:
        """Print the line, after everything else."""
        if self._line:
            print(self._line)  # noqa: T201 (pytest's own last line is printed by then)


def _counted(stats: dict[str, list[object]], seconds: float) -> str:
    """How many tests ended how; an error of a fixture is a failure."""
    passed, failed, skipped = (
        sum(len(stats.get(kind, ())) for kind in kinds)
        for kinds in (("passed",), ("failed", "error"), ("skipped",))
    )
    return f"{passed} passed, {failed} failed, {skipped} skipped in {seconds / 60:.1f} minutes"


def closing() -> Closing:
    """Begin to count now, or when ``make test`` began."""
    return Closing(float(os.environ.get(BEGAN) or time.time()))
