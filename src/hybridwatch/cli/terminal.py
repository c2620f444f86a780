"""What is printed, without control sequences of names and texts, and the progress of long work."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click
import rich.console
from rich.text import Text

from hybridwatch.system.plain_text import visible

if TYPE_CHECKING:
    from hybridwatch.measurement.session_request import Progress, ProgressCallback

_LINE_FEED: Final = "\\x0a"
_MINUTE: Final = 60.0
_TRIALS: Final = 4
"""Behind the first, before anybody guesses from them."""


def say(*lines: str, err: bool = False) -> None:
    """Print lines, each as one: neither a name nor a text can make another of them."""
    for line in lines:
        click.echo(visible(line).replace("\n", _LINE_FEED), err=err)


def as_text(text: str) -> Text:
    """Give a text for a rich console that shows it as it is; line ends stay."""
    return Text(visible(text))


class Console(rich.console.Console):
    """A console for people; where ``NO_COLOR`` is set, without bold and dim as well."""

    def __init__(self, *, stderr: bool = False) -> None:
        plain = bool(os.environ.get("NO_COLOR"))
        super().__init__(stderr=stderr, color_system=None if plain else "auto")

    def on_broken_pipe(self) -> None:
        """Leave it to ``main`` to end, as for whatever is printed without a console."""
        raise BrokenPipeError


@contextmanager
def file_progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error if that is a terminal; gives what takes done and total."""
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    with Bar(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class TimeLeft:
    """How long so many sessions still take, as long as those before each; ``clock`` in seconds."""

    def __init__(self, sessions: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._sessions = sessions
        self._clock = clock
        self._begun: float | None = None
        self._first: tuple[int, float] | None = None
        self._took: list[float] = []

    def begin(self) -> None:
        """Note that a session begins, and the one before it is over."""
        now = self._clock()
        if self._begun is not None:
            self._took.append(now - self._begun)
        self._begun, self._first = now, None

    def after(self, done: int, total: int) -> str:
        """Say how long it takes when so many trials of a session are made; empty if unknown."""
        if self._begun is None:
            return ""
        now = self._clock()
        if done and self._first is None:  # it waited for the engine's start
            self._first = done, now
        if self._first is None or (made := done - self._first[0]) < _TRIALS:
            return ""
        here = (now - self._first[1]) / made * (total - done)
        to_come = max(0, self._sessions - len(self._took) - 1)
        like = [*self._took, now - self._begun + here]
        left = here + to_come * sum(like) / len(like)
        return f"about {max(1, round(left / _MINUTE))} min left"


@contextmanager
def progress(
    console: rich.console.Console, left: TimeLeft | None = None
) -> Iterator["ProgressCallback"]:
    """A bar on a terminal, a line per step elsewhere; with ``left`` also the remaining time."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    if left is not None:
        left.begin()

    def remaining(step: "Progress") -> str:
        return "" if left is None else left.after(step.done, step.total)

    def print_step(step: "Progress") -> None:
        line = f"[{step.done}/{step.total}] {step.text}"
        console.print(as_text(", ".join(filter(None, (line, remaining(step))))))

    if not console.is_terminal:
        yield print_step
        return
    timing = TimeElapsedColumn(), TextColumn("{task.fields[left]}")
    columns = BarColumn(12), MofNCompleteColumn(), *timing, TextColumn("{task.description}")
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", left="")

        def on_progress(step: "Progress") -> None:
            if step.lasting:
                bar.console.print(as_text(step.text))
            text, rest = step.text, remaining(step)
            bar.update(task, completed=step.done, total=step.total, description=text, left=rest)

        yield on_progress
