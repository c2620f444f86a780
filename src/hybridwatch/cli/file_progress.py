"""A bar for work that goes through files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress


@contextmanager
def file_progress(console: Console, what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on a terminal, nothing elsewhere; gives the function that is told the progress."""
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what)
        yield lambda done, total: bar.update(task, completed=done, total=total)
