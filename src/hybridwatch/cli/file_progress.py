"""A bar for work that goes through files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress


@contextmanager
def file_progress(console: Console, what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar where somebody looks, nothing elsewhere; gives who takes how far it is."""
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what)
        yield lambda done, total: bar.update(task, completed=done, total=total)
