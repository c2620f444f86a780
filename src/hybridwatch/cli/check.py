"""``hybridwatch check``: ask a running server for what must hold for every right engine."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from hybridwatch.cli.options import leave, print_json, takes_json, takes_results, verb
from hybridwatch.cli.terminal import Console, say
from hybridwatch.server_check.plan import Settings, Tell, check_server
from hybridwatch.server_check.result import CheckResult
from hybridwatch.server_check.screen import write_result

_KEYS: Final = ("HYBRIDWATCH_API_KEY", "OPENAI_API_KEY")
_UNREACHABLE: Final = 2
_INTERRUPTED: Final = 130


@verb(
    "check",
    "http://127.0.0.1:8000",
    "http://127.0.0.1:8000 --gentle --minutes 5",
    "http://127.0.0.1:8000 --against http://127.0.0.1:8001",
    "http://127.0.0.1:8000 --json",
)
@click.argument("url")
@click.option("--against", default="", metavar="URL2", help="Compare this server with the first.")
@click.option("--model", default="", help="The server's name of its model; else its first one.")
@click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    default=2.0,
    show_default=True,
    help="How long to ask.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="What prompts are drawn from.")
@click.option("--gentle", is_flag=True, help="Send one request at a time.")
@click.option("--strict", is_flag=True, help="Let nothing pass as rounding.")
@click.option(
    "--build",
    "labels",
    multiple=True,
    metavar="LABEL",
    help="What the record calls the server, twice for two; else its host and port.",
)
@takes_results("Folder that gets the record.")
@click.option("--no-record", is_flag=True, help="Keep no record.")
@takes_json("Print one JSON object (docs/check.md).")
def command(
    labels: tuple[str, ...], results: Path, *, no_record: bool, as_json: bool, **asked: Any
) -> None:
    """Check whether a running server answers right, whatever its engine and model.

    The server needs only /v1/completions: vLLM, SGLang, TensorRT-LLM, a router. Each answer is
    compared with another one of the same server: alone and with others, new and from the cache,
    whole and as a stream (docs/check.md). Its API key is read from HYBRIDWATCH_API_KEY or
    OPENAI_API_KEY. With --against the second server has to answer as the first one does alone.

    Exit status: 0 all held, 1 something broke, 2 the server could not be checked, 130 Ctrl-C ended
    it before something broke.
    """
    key = next(filter(None, map(os.environ.get, _KEYS)), "")
    settings = Settings(key=key, **asked)
    if not no_record:
        from hybridwatch.records.store import check_writable

        check_writable(results)
    say(f"sent: {settings.load()}", err=True)
    with _progress() as tell:
        result = asyncio.run(check_server(settings, tell))
    record = "" if no_record else _keep(result, labels, results)
    if as_json:
        print_json(result.as_json() | ({"record": record} if record else {}))
    else:
        say(*write_result(result), *([f"record: {record}"] if record else []))
    leave(bad_news=result.broke)
    if result.interrupted:
        raise click.exceptions.Exit(_INTERRUPTED)
    if result.stopped or result.is_empty:
        raise click.exceptions.Exit(_UNREACHABLE)


def _keep(result: CheckResult, labels: tuple[str, ...], results: Path) -> str:
    """Write the record, and give its path; none of what was interrupted or never answered."""
    if result.interrupted or (result.is_empty and not result.stopped):
        return ""
    from hybridwatch.records.store import write_run
    from hybridwatch.server_check.record import build_record

    return str(write_run(results, build_record(result, labels)))


@contextmanager
def _progress() -> Iterator[Tell]:
    """Show which relation is checked and how much time is over, on a terminal."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = BarColumn(24), TimeElapsedColumn(), TextColumn("{task.description}")
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda what, share: bar.update(task, completed=share, description=what)
