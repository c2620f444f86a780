"""A first look at a new build: its environment, its fixes, its contracts.

Everything is done by the verbs of the checkout that is to be committed, in processes of their own,
so what is looked at is what the commit has, and a table that was read here before does not matter.
"""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hybridwatch.errors import BuildError
from hybridwatch.scenarios.load import find
from hybridwatch.system.guarded import GuardedProcess
from hybridwatch.system.home import HOME_VARIABLE
from hybridwatch.system.python_command import python_command
from hybridwatch_lab.releases.tables import Probed

GROUP: Final = "smoke"
"""The scenarios whose contracts are looked at."""
_MINUTE: Final = 60.0
_LOOK_S: Final = 1.0
_PLACE: Final = re.compile(r"\[\d+/\d+\] ")
_TAIL_LINES: Final = 8
_NAMED: Final = 3


class FirstLook:
    """A first look at a build of a checkout, not yet committed."""

    def __init__(self, checkout: Path, build: str, say: Callable[[str], None]) -> None:
        self._checkout = checkout
        self._build = build
        self._say = say

    def install(self) -> str:
        """Make the environment."""
        status, _, log = self._call("engine", "install", self._build, limit_s=60 * _MINUTE)
        if status:
            raise BuildError(_read_end(log))
        return "the environment could be made"

    def check(self, release: str, wanted: Mapping[str, Probed]) -> str:
        """Hold the installed code against what its wheel was seen to have."""
        words = ("engine", "check", self._build, "--json")
        status, answer, log = self._call(*words, limit_s=5 * _MINUTE)
        if status:
            raise BuildError(_read_end(log))
        found = json.loads(answer)["fixes"]
        other = [
            fix
            for fix, probed in wanted.items()
            if (found[fix]["state"], release in found[fix]["as_in"]) != (probed.state, True)
        ]
        if other:
            raise BuildError(f"the installed code is not the wheel's: {_some(other)}")
        return f"{len(wanted)} fixes as in the wheel"

    def contracts(self, accelerator: str, release: str) -> str:
        """Run the contracts of the smoke scenarios."""
        scenarios = find(self._checkout / "scenarios", (GROUP,))
        names = [one.id for one in scenarios if one.fits(accelerator) and one.starts_on(release)]
        words = ("run", *names, "--build", self._build, "--phases", "contract", "--json")
        status, answer, log = self._call(*words, limit_s=120 * _MINUTE)
        try:
            runs: list[dict[str, Any]] = json.loads(answer)["runs"]
        except (ValueError, LookupError, TypeError):
            raise BuildError(_read_end(log)) from None
        found = {run["scenario"]: run["troubles"] for run in runs}
        lines = [f"{name}: {trouble}" for name in names for trouble in found.get(name, ())]
        lines += [f"{name}: {_reason(log, name)}" for name in names if name not in found]
        if status or lines:
            bad = sum(1 for name in names if found.get(name) != [])
            raise BuildError("\n".join([f"{bad} of {len(names)} scenarios", *lines]))
        without = {one.id for one in scenarios} - set(names)
        rest = f"; without {_some(sorted(without))}, not for it" if without else ""
        return f"{len(names)} scenarios as of a healthy engine{rest}"

    def _call(self, *words: str, limit_s: float) -> tuple[int, str, str]:
        """Call a verb; give its status, what it answers, and what it says besides."""
        folder = self._checkout.parent
        answer, log = folder / "answer", folder / f"{words[0]}-{words[1].partition('/')[0]}.log"
        environment = {
            HOME_VARIABLE: str(self._checkout),
            "PYTHONPATH": str(self._checkout / "src"),
            "COLUMNS": "1000",
        }
        command = python_command("-m", "hybridwatch", *words)
        with answer.open("wb") as file:
            process = GuardedProcess(
                command, log, environment, folder=self._checkout, stdout=file.fileno()
            )
            try:
                status = self._watch(process, (answer, log), limit_s)
            except TimeoutError:
                raise BuildError(f"{words[0]}: did not end in {limit_s / _MINUTE:g} min") from None
            finally:
                process.stop()
        printed = log.read_text(encoding="utf-8", errors="replace")
        return status, answer.read_text(encoding="utf-8"), printed

    def _watch(self, process: GuardedProcess, files: Sequence[Path], limit_s: float) -> int:
        """Wait for a verb, and pass on each line with a place in it: ``[3/15] contract``."""
        deadline, told = time.monotonic() + limit_s, 0
        status: int | None = None
        while status is None:
            left = deadline - time.monotonic()
            try:
                status = process.wait(min(_LOOK_S, max(left, 0.0)))
            except TimeoutError:
                if left <= 0:
                    raise
            texts = (file.read_text(encoding="utf-8", errors="replace") for file in files)
            whole = [line for text in texts for line in text.rpartition("\n")[0].splitlines()]
            lines = [line for line in whole if _PLACE.match(line)]
            for line in lines[told:]:
                self._say(f"{self._build}: {line}")
            told = len(lines)
        return status


def _read_end(log: str) -> str:
    return "\n".join(log.splitlines()[-_TAIL_LINES:])


def _reason(log: str, name: str) -> str:
    """Find what a run says of a scenario that it could not measure."""
    start = f"{name}: "
    found = (line.removeprefix(start) for line in log.splitlines() if line.startswith(start))
    return next(found, "not measured")


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join([*names[:_NAMED], *([f"{more} more"] if more > 0 else [])])
