"""What a verb that measures for minutes owes its caller: progress."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from hybridwatch.measure.session import Progress, Tell


@contextmanager
def progress(console: Console) -> Iterator[Tell]:
    """A bar on a terminal, a line per step elsewhere."""
    if not console.is_terminal:
        yield lambda step: console.print(
            f"[{step.done}/{step.total}] {step.text}", markup=False, highlight=False
        )
        return
    columns = (
        BarColumn(24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("")

        def tell(step: Progress) -> None:
            if step.lasting:
                bar.console.print(step.text, markup=False, highlight=False)
            bar.update(task, completed=step.done, total=step.total, description=step.text)

        yield tell
