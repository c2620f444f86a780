"""What is seen of several scenarios while they are measured stage by stage: a line for each."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from hybridwatch.analysis.wording.labels import plural
from hybridwatch.measurement.phased_run import STAGES
from hybridwatch.measurement.session import Progress
from hybridwatch.records.run import Phase
from hybridwatch.reports.escape import one_line
from hybridwatch.system.console_text import as_text

_NAMES: Final = ("contracts", "accuracy", "times")
_UNDER_WAY: Final = "..."
_MINUTE: Final = 60
_PER_SECOND: Final = 2.0


class Board:
    """A table that is drawn again and again on a terminal; elsewhere a line for each step.

    Args:
        console: Where to.
        scenarios: Their ids, in order.
        clock: Seconds.
    """

    def __init__(
        self,
        console: Console,
        scenarios: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._scenarios = scenarios
        self._steps = 0
        self._stages: tuple[int, ...] = ()
        self._clock = clock
        self._begin = clock()
        self._done = 0
        self._cells = [["", "", ""] for _ in scenarios]
        self._found = [Text() for _ in scenarios]
        self._doing = ""

    @contextmanager
    def shown(self, steps: Sequence[Collection[Phase]]) -> Iterator[None]:
        """Keep the table in sight; it is gone afterwards.

        Args:
            steps: What each measures.
        """
        self._steps = len(steps)
        self._stages = tuple(sorted({_stage(tuple(phases)) for phases in steps}))
        if not self._console.is_terminal:
            what = f"{plural(len(self._scenarios), 'scenario')}, both sides of each in turn"
            self._console.print(f"{what}: {', then '.join(self._names)}", soft_wrap=True)
            yield
            return
        with Live(
            get_renderable=self.drawn,
            console=self._console,
            refresh_per_second=_PER_SECOND,
            transient=True,
        ):
            yield

    def tell(self, progress: Progress) -> None:
        """Say what is going on; a log has only what came of it."""
        self._doing = progress.text

    def begin(self, scenario: int, phases: Sequence[Phase]) -> None:
        """Note that a step begins."""
        self._cells[scenario][_stage(phases)] = _UNDER_WAY

    def end(self, scenario: int, phases: Sequence[Phase], found: Text, news: Text) -> None:
        """Note what is known after a step.

        Args:
            scenario: Whose.
            phases: What it measured.
            found: What all of the scenario shows so far, for the table.
            news: What this step has shown, for a log.
        """
        self._done += 1
        stage = _stage(phases)
        self._cells[scenario][stage] = self._elapsed()
        self._found[scenario] = found
        if not self._console.is_terminal:
            place = f"[{self._done}/{self._steps}] {self._elapsed()}"
            line = as_text(f"{place} {self._scenarios[scenario]}, {_NAMES[stage]}: ")
            self._console.print(line.append_text(news), soft_wrap=True)

    @property
    def _names(self) -> tuple[str, ...]:
        """Of the stages that are measured."""
        return tuple(_NAMES[stage] for stage in self._stages)

    def _elapsed(self) -> str:
        minutes, seconds = divmod(int(self._clock() - self._begin), _MINUTE)
        return f"{minutes}:{seconds:02}"

    def drawn(self) -> Table:
        """Draw the table as it stands."""
        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
        for name in ("scenario", *self._names):
            table.add_column(name, no_wrap=True)
        table.add_column("found", no_wrap=True, overflow="ellipsis")
        for scenario, cells, found in zip(self._scenarios, self._cells, self._found, strict=True):
            shown = (Text(cells[stage]) for stage in self._stages)
            table.add_row(Text(one_line(scenario)), *shown, found)
        table.caption = as_text(f"{self._elapsed()} {self._doing}")
        table.caption_justify = "left"
        return table


def _stage(phases: Sequence[Phase]) -> int:
    return next(at for at, stage in enumerate(STAGES) if phases[0] in stage)
