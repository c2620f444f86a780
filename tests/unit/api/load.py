"""How fast the API answers a store of any size, and what an answer costs the server.

::

    python -m tests.unit.api.load FOLDER [--rate 200] [--requests 4000] [--core 0]

Starts ``hybridwatch serve --api`` over FOLDER, on one processor core, and asks it all kinds of
questions. Requests come when they come (Poisson), whether earlier ones were answered or not, so
that a time counts from when a request was due, the wait behind others included. Every other one is
a question that nobody asked before. FOLDER is best one by ``tests.unit.database.synthetic``,
brought up to date by ``hybridwatch index``. On a machine that others use, the processor time is the
number to look at. The client works, too: where it shall not disturb, start it with ``taskset`` on
another core. ``--rate 0`` asks as fast as answers come, eight questions at a time.
"""

import asyncio
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import click
import httpx

_STARTING_S: Final = 300
_CONNECTIONS: Final = 200
_AT_A_TIME: Final = 8
_WARM_UP: Final = 0.1
"""As many more requests come first, and are not counted."""
_SEED: Final = 1
_SHARES: Final = {"runs": 4, "run": 4, "report": 2, "series": 3, "levels": 4, "alerts": 3}
"""How often each kind of question is asked."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was seen of a server.

    Attributes:
        median_ms: Time from when a request was due until its answer was read.
        p95_ms: Of 20 requests 19 took at most so long.
        p99_ms: As that, of a hundred.
        processor_ms: Time of the server on its processor for one request.
        busy: Tasks that the machine had to do at a time, over the last minute, at the end.
    """

    answers: dict[int, int]
    rate: float
    median_ms: float
    p95_ms: float
    p99_ms: float
    slowest_ms: float
    p95_ms_of: dict[str, float]
    processor_ms: float
    busy: float


class Questions:
    """Makes requests up."""

    def __init__(self, client: httpx.Client, drawn: random.Random) -> None:
        self._drawn = drawn
        self._runs = _everything(client, "/v1/runs")
        self._series = _everything(client, "/v1/series")
        self._asked: set[str] = set()
        self._known = {kind: [self._new(kind) for _ in range(4)] for kind in _SHARES}

    def next(self) -> tuple[str, str]:
        """Give a kind and an address: of two, one that nobody asked for before."""
        (kind,) = self._drawn.choices(list(_SHARES), list(_SHARES.values()))
        if self._drawn.random() < 1 / 2:
            return kind, self._drawn.choice(self._known[kind])
        return kind, self._new(kind)

    def _new(self, kind: str) -> str:
        for _ in range(100):
            made: str = getattr(self, f"_of_{kind}")()
            if made not in self._asked:
                self._asked.add(made)
                return made
        raise ValueError(f"{kind}: no more questions that were not asked: take a larger store")

    def _page(self, path: str, **asked: str) -> str:
        chosen = {name: value for name, value in asked.items() if self._drawn.random() < 1 / 2}
        return f"{path}?{urlencode(chosen | {'limit': self._drawn.randint(1, 200)})}"

    def _of_runs(self) -> str:
        one = self._drawn.choice(self._runs)
        return self._page(
            "/v1/runs", scenario=one["scenario"], build=one["builds"][-1], role=one["role"]
        )

    def _of_run(self) -> str:
        return f"/v1/runs/{self._drawn.choice(self._runs)['run_id']}"

    def _of_report(self) -> str:
        return f"{self._of_run()}/report"

    def _of_series(self) -> str:
        one = self._drawn.choice(self._series)
        return self._page("/v1/series", scenario=one["scenario"], metric=one["metric"])

    def _of_levels(self) -> str:
        build = self._drawn.choice(self._runs)["builds"][0]
        return self._page(f"/v1/series/{self._drawn.choice(self._series)['id']}", build=build)

    def _of_alerts(self) -> str:
        one = self._drawn.choice(self._runs)
        return self._page("/v1/alerts", scenario=one["scenario"], status="open")


def _everything(client: httpx.Client, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    page: dict[str, Any] = {"next": ""}
    while page["next"] is not None:
        page = client.get(path, params={"limit": 200, "cursor": page["next"]}).json()
        found += page["items"]
    return found


@dataclass(slots=True)
class _Client:
    """Sends requests over connections that are kept, as little work as can be."""

    host: str
    port: int
    open: int = 0
    answers: Counter[int] = field(default_factory=Counter)
    took: list[tuple[str, float]] = field(default_factory=list)
    _idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = field(default_factory=list)

    async def ask(self, kind: str, path: str, due: float) -> None:
        self.open += 1
        while self._idle and self._idle[-1][0].at_eof():
            self._idle.pop()[1].close()  # the server has let go of what was idle for long
        reader, writer = (
            self._idle.pop()
            if self._idle
            else await asyncio.open_connection(self.host, self.port, limit=2**20)
        )
        writer.write(f"GET {path} HTTP/1.1\r\nhost: {self.host}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        if length is None:
            raise ValueError(f"{path}: an answer without a length")
        await reader.readexactly(int(length[1]))
        self.took.append((kind, time.perf_counter() - due))
        self.answers[int(head[9:12])] += 1
        self._idle.append((reader, writer))
        self.open -= 1

    def close(self) -> None:
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()

    def forget(self) -> None:
        """Begin to count again."""
        self.answers.clear()
        self.took.clear()


def measure(results: Path, *, rate: float, requests: int, core: int) -> Outcome:
    """Serve a store, and ask."""
    drawn = random.Random(_SEED)
    with _serving(results, core) as (process, port):
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=600) as speaking:
            questions = Questions(speaking, drawn)
        client = _Client("127.0.0.1", port)
        warming, counted = round(requests * _WARM_UP), requests
        asyncio.run(_ask_all(client, [questions.next() for _ in range(warming)], rate, drawn))
        client.forget()
        used, began = _processor_s(process.pid), time.perf_counter()
        asyncio.run(_ask_all(client, [questions.next() for _ in range(counted)], rate, drawn))
        used, took = _processor_s(process.pid) - used, time.perf_counter() - began
    times = sorted(1000 * took for _, took in client.took)
    return Outcome(
        answers=dict(client.answers),
        rate=len(times) / took,
        median_ms=statistics.median(times),
        p95_ms=_quantile(times, 0.95),
        p99_ms=_quantile(times, 0.99),
        slowest_ms=times[-1],
        p95_ms_of={
            kind: _quantile(sorted(1000 * took for k, took in client.took if k == kind), 0.95)
            for kind in _SHARES
        },
        processor_ms=1000 * used / len(times),
        busy=os.getloadavg()[0],
    )


async def _ask_all(
    client: _Client, asked: list[tuple[str, str]], rate: float, drawn: random.Random
) -> None:
    if rate:
        await _when_due(client, asked, rate, drawn)
    else:
        left = iter(asked)
        await asyncio.gather(*(_one_by_one(client, left) for _ in range(_AT_A_TIME)))
    client.close()


async def _when_due(
    client: _Client, asked: list[tuple[str, str]], rate: float, drawn: random.Random
) -> None:
    due = time.perf_counter()
    async with asyncio.TaskGroup() as waiting:
        for kind, path in asked:
            due += drawn.expovariate(rate)
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            if client.open > _CONNECTIONS:
                raise ValueError(f"{client.open} requests wait: the server cannot keep up")
            waiting.create_task(client.ask(kind, path, due))


async def _one_by_one(client: _Client, left: Iterator[tuple[str, str]]) -> None:
    for kind, path in left:
        await client.ask(kind, path, time.perf_counter())


def _processor_s(process: int) -> float:
    """Processor time of a process and its threads, as Linux counts it."""
    counted = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(counted[11]) + int(counted[12])) / os.sysconf("SC_CLK_TCK")


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@contextmanager
def _serving(results: Path, core: int) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["serve", "--api", "--results", str(results), "--port", str(port), "--rate", "1e6"]
    process = subprocess.Popen([sys.executable, "-m", "hybridwatch", *words])
    os.sched_setaffinity(process.pid, {core})
    try:
        _wait(process, port)
        yield process, port
    finally:
        process.terminate()
        process.wait()


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _STARTING_S
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as speaking:
            if speaking.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    sys.exit("the server did not start")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--rate", type=float, default=200.0, show_default=True, help="Requests a second.")
@click.option("--requests", type=int, default=4000, show_default=True, help="That are counted.")
@click.option("--core", type=int, default=0, show_default=True, help="Of the server.")
def command(folder: Path, rate: float, requests: int, core: int) -> None:
    """Measure the API over FOLDER."""
    try:
        outcome = measure(folder, rate=rate, requests=requests, core=core)
    except* ValueError as errors:
        sys.exit("; ".join(str(error) for error in errors.exceptions))
    answers = ", ".join(f"{count} of {status}" for status, count in outcome.answers.items())
    click.echo(f"{outcome.rate:.0f} requests a second; answers: {answers}")
    click.echo(
        f"median {outcome.median_ms:.1f} ms, p95 {outcome.p95_ms:.1f} ms, "
        f"p99 {outcome.p99_ms:.1f} ms, slowest {outcome.slowest_ms:.1f} ms"
    )
    for kind, p95_ms in outcome.p95_ms_of.items():
        click.echo(f"  p95 of {kind:8}{p95_ms:8.1f} ms")
    click.echo(f"processor {outcome.processor_ms:.2f} ms a request; load {outcome.busy:.1f}")


if __name__ == "__main__":
    command()
