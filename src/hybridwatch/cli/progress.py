"""What a verb that measures for minutes owes its caller: progress."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from hybridwatch.measurement.session import Progress, Tell
from hybridwatch.system.console_text import as_text

_MINUTE: Final = 60.0
_TRIALS: Final = 4
"""Behind the first, before anybody guesses from them."""


class TimeLeft:
    """How long what is planned will still take, if it goes on as it went.

    Args:
        sessions: How many there will be; those to come are taken to be as long as those before.
        clock: Seconds.
    """

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
        """Say how long it will take from here; empty while nobody can know.

        Args:
            done: Trials made in this session.
            total: Trials planned in it.
        """
        if self._begun is None:
            return ""
        now = self._clock()
        here = self._here(done, total, now)
        if here is None:
            return ""
        to_come = max(0, self._sessions - len(self._took) - 1)
        like = [*self._took, now - self._begun + here]
        left = here + to_come * sum(like) / len(like)
        return f"about {max(1, round(left / _MINUTE))} min left"

    def _here(self, done: int, total: int, now: float) -> float | None:
        """Seconds that this session still takes; the first trial is no measure of the others.

        It waits for the engine's start.
        """
        if done and self._first is None:
            self._first = done, now
        if self._first is None or done - self._first[0] < _TRIALS:
            return None
        made = done - self._first[0]
        return (now - self._first[1]) / made * (total - done)


@contextmanager
def progress(console: Console, left: TimeLeft | None = None) -> Iterator[Tell]:
    """A bar on a terminal, a line per step elsewhere.

    Args:
        console: Where to.
        left: Estimates the remaining time; without it the bar shows none.
    """
    if left is not None:
        left.begin()

    def remaining(step: Progress) -> str:
        return "" if left is None else left.after(step.done, step.total)

    if not console.is_terminal:
        yield lambda step: console.print(
            as_text(
                ", ".join(
                    filter(None, (f"[{step.done}/{step.total}] {step.text}", remaining(step)))
                )
            )
        )
        return
    columns = (
        BarColumn(12),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.description}"),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", left="")

        def tell(step: Progress) -> None:
            if step.lasting:
                bar.console.print(as_text(step.text))
            bar.update(
                task,
                completed=step.done,
                total=step.total,
                description=step.text,
                left=remaining(step),
            )

        yield tell
