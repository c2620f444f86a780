"""How long people wait for pages of the dashboard when many look at once.

::

    python -m tests.dashboard.crowd FOLDER [--people 20] [--pages 12]

FOLDER is a store of any size, such as one by ``tests.unit.database.synthetic``; it is read and
judged first, and that is not counted. Each person has a session of their own, as a browser would:
the protocol of Streamlit over a WebSocket, without a browser's own work. They open pages one after
the other, each with a few seconds of reading between. A page takes from the address until the
server has run it whole. Exit status 1: p95 is longer than it may be, or a page ended with an error.
"""

import asyncio
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import aiohttp
import click
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from hybridwatch.database.queries import Index, open_index
from tests.dashboard.server import serving

_P95_S: Final = 3.0
_READING_S: Final = (2.0, 6.0)
"""What a person takes to look at a page, between these."""
_LONGEST_S: Final = 300.0
_BIG: Final = 2**26


@dataclass(frozen=True, slots=True)
class Crowd:
    """What people waited."""

    people: int
    pages: int
    errors: list[str]
    median_s: float
    p95_s: float
    memory_mib: float

    @property
    def is_fast(self) -> bool:
        """Whether people wait as long as they may, and see what they opened."""
        return self.p95_s <= _P95_S and not self.errors


@dataclass(frozen=True, slots=True)
class Opened:
    """A page that was opened; what is wrong with it, if anything."""

    address: str
    seconds: float
    wrong: str


def addresses(index: Index) -> list[list[tuple[str, str]]]:
    """Give the pages that people open, one kind of page after the other."""
    cells = index.cells().drop_duplicates(["scenario", "testbed"])
    runs = index.runs().tail(100)
    scenarios, ids = dict.fromkeys(cells["scenario"]), dict.fromkeys(runs["run"])
    return [
        *([(screen, "")] for screen in ("", "alerts", "runs")),
        [("scenario", urlencode({"scenario": scenario})) for scenario in scenarios],
        [("run", urlencode({"run": run})) for run in ids],
    ]


async def visit(
    url: str, kinds: Sequence[Sequence[tuple[str, str]]], seed: int, count: int
) -> list[Opened]:
    """Open pages as one person does."""
    rng = random.Random(seed)
    found: list[Opened] = []
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(
            f"{url}/_stcore/stream", protocols=("streamlit",), max_msg_size=_BIG
        ) as socket,
    ):
        for _ in range(count):
            await asyncio.sleep(rng.uniform(*_READING_S))
            found.append(await _open(socket, *rng.choice(rng.choice(kinds))))
    return found


async def _open(socket: aiohttp.ClientWebSocketResponse, page: str, query: str) -> Opened:
    message = BackMsg()
    message.rerun_script.page_name = page
    message.rerun_script.query_string = query
    begin = time.perf_counter()
    await socket.send_bytes(message.SerializeToString())
    wrong = ""
    while True:
        async with asyncio.timeout(_LONGEST_S):
            answer = ForwardMsg.FromString(await socket.receive_bytes())
        kind = answer.WhichOneof("type")
        if kind == "delta" and answer.delta.new_element.WhichOneof("type") == "exception":
            wrong = answer.delta.new_element.exception.message
        if kind == "page_not_found":
            wrong = kind
        if kind == "script_finished":
            return Opened(f"{page}?{query}", time.perf_counter() - begin, wrong)


async def crowd(
    url: str, pid: int, kinds: Sequence[Sequence[tuple[str, str]]], people: int, count: int
) -> Crowd:
    """Let people look, all at once."""
    visits = [visit(url, kinds, seed, count) for seed in range(people)]
    opened = [one for found in await asyncio.gather(*visits) for one in found]
    seconds = sorted(one.seconds for one in opened)
    return Crowd(
        people=people,
        pages=len(opened),
        errors=[f"{one.address}: {one.wrong}" for one in opened if one.wrong],
        median_s=statistics.median(seconds),
        p95_s=seconds[int(0.95 * len(seconds))],
        memory_mib=_most_memory(pid),
    )


def _most_memory(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (peak,) = (line for line in lines if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--people", default=20, show_default=True)
@click.option("--pages", default=12, show_default=True, help="That each person opens.")
def main(folder: Path, people: int, pages: int) -> None:
    """Measure, and print what people waited."""
    index = open_index(folder)
    with serving(folder) as server:
        found = asyncio.run(crowd(server.address, server.pid, addresses(index), people, pages))
    click.echo(
        f"{found.people} people, {found.pages} pages: median {found.median_s:.2f} s, "
        f"p95 {found.p95_s:.2f} s, {found.memory_mib:.0f} MiB, {len(found.errors)} errors"
    )
    click.echo("\n".join(found.errors), err=True)
    sys.exit(0 if found.is_fast else 1)


if __name__ == "__main__":
    main()
