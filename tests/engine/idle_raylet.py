"""Whether an idle host of Ray beside an engine costs it anything: an A/A, with and without in turn.

::

    taskset -c 1 python -m tests.engine.idle_raylet --hosts 10

One engine answers all the time, and beside it are idle hosts of Ray. A block is eight stretches of
a quarter of a second; in every other one, in turn the first and the second, all processes of the
hosts are stopped (SIGSTOP), so that nothing but these differs. A machine that others share is
faster now and slower then, but seldom changes within two seconds.

What one host costs is less than such a machine's noise. So there are several, each of which takes
its share of the processor, and one is said to cost their root: of ten that leave 0.92 of the
throughput, one leaves 0.92 ** (1 / 10). More of them disturb each other's and the engine's caches
more, so this is rather too much than too little. ``--hosts 1`` measures one alone, in hours.

What is said is the median over blocks of the ratio of tokens per second with the hosts to those
without, with its 95 % interval, both of all hosts and of one, and how much of a processor a host
takes. On one core (``taskset``) hosts and engine share it, which costs the most. The head works all
the time on the other cores, if there are any: it belongs on another machine.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import click
import httpx
import numpy as np
import psutil
from scipy import stats

from hybridwatch.analysis.wording.labels import plural
from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.server import Server
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.scenarios.load import load_scenario
from hybridwatch.system.guarded import processor_seconds
from hybridwatch.system.home import home
from tests.unit.orchestration.fleet.on_ray import Nodes

_LEAST = 6  # fewer blocks have no 95 % interval of a median
_STRETCH_S = 0.25
_STRETCHES = 8
_ORDER = (True, False, False, True)
_AT_ONCE = 3
_PROMPT = list(range(40, 88))
_TOKENS = 900
_WARM_UP_S = 60.0  # hosts have much to do while they come up
_ALONE_S = 60.0


@contextmanager
def idle_hosts(count: int) -> Iterator[list[psutil.Process]]:
    """Have a head, and hosts with nothing to do; give the hosts' processes."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(range(os.cpu_count() or 1)) - mine or mine)
    nodes = Nodes(0)
    os.sched_setaffinity(0, mine)
    before = set(psutil.Process().children(recursive=True))
    for number in range(count):
        nodes.add(f"h{number}")
    processes = [one for one in psutil.Process().children(recursive=True) if one not in before]
    try:
        yield processes
    finally:
        resume(processes)
        nodes.stop()


def suspend(processes: list[psutil.Process]) -> None:
    """Stop processes where they are."""
    for process in processes:
        process.suspend()


def resume(processes: list[psutil.Process]) -> None:
    """Let them go on."""
    for process in processes:
        process.resume()


class Stream:
    """Requests that an engine answers one after another, a few at a time."""

    def __init__(self, server: Server) -> None:
        self.arrivals: list[float] = []
        self._url = f"{server.servers[-1].url}/v1/completions"
        self._body = {
            "model": server.launch.served_name,
            "prompt": _PROMPT,
            "max_tokens": _TOKENS,
            "ignore_eos": True,
            "stream": True,
        }
        self._ended = Event()

    @contextmanager
    def flowing(self) -> Iterator[None]:
        """Keep the engine busy."""
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            asking = [threads.submit(self._ask) for _ in range(_AT_ONCE)]
            try:
                yield
            finally:
                self._ended.set()
        for one in asking:
            one.result()

    def _ask(self) -> None:
        with httpx.Client(trust_env=False, timeout=60) as client:
            while not self._ended.is_set():
                with client.stream("POST", self._url, json=self._body) as answer:
                    for line in answer.raise_for_status().iter_lines():
                        if line.startswith("data: {"):
                            self.arrivals.append(time.perf_counter())


def log_ratio(stream: Stream, ray: list[psutil.Process], *, is_first: bool) -> float:
    """Measure a block."""
    seconds, tokens = {True: 0.0, False: 0.0}, {True: 0, False: 0}
    for turn in range(_STRETCHES):
        beside = _ORDER[turn % len(_ORDER)] == is_first
        (resume if beside else suspend)(ray)
        began, before = time.perf_counter(), len(stream.arrivals)
        time.sleep(_STRETCH_S)
        tokens[beside] += len(stream.arrivals) - before
        seconds[beside] += time.perf_counter() - began
    return float(np.log(tokens[True] / seconds[True] / (tokens[False] / seconds[False])))


def share_of_a_processor(processes: list[psutil.Process]) -> float:
    """Give how much of a processor these take while nothing is asked of them."""
    resume(processes)
    time.sleep(1.0)
    pids = {one.pid for one in processes}
    roots = [one.pid for one in processes if one.ppid() not in pids]
    before = sum(map(processor_seconds, roots))
    time.sleep(_ALONE_S)
    return (sum(map(processor_seconds, roots)) - before) / _ALONE_S


def said(ratios: list[float], hosts: int) -> str:
    """Say the medians of what logarithms stand for, with their intervals."""
    interval = stats.quantile_test(ratios, p=0.5).confidence_interval(0.95)
    every = np.array([np.median(ratios), interval.low, interval.high])
    words = "{:.4f}, 95 % {:.4f} to {:.4f}"
    of_all = f"{plural(hosts, 'host')}: {words.format(*np.exp(every))}"
    return of_all if hosts == 1 else f"{of_all}; 1 host: {words.format(*np.exp(every / hosts))}"


@click.command()
@click.option("--blocks", type=click.IntRange(_LEAST), default=300, show_default=True)
@click.option("--hosts", type=click.IntRange(1), default=10, show_default=True)
@click.option("--scenario", "name", default="smoke/padded-graph-rows", show_default=True)
@click.option("--build", default="cpu-0.27.1", show_default=True)
def main(blocks: int, hosts: int, name: str, build: str) -> None:
    """Measure in blocks, and say the ratio with its interval."""
    root = home() / "scenarios"
    scenario = load_scenario(root / f"{name}.toml", root)
    ratios: list[float] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        EnginePool(
            scenario, [parse_label(build)], home() / "models", Path(folder), click.echo
        ) as pool,
        idle_hosts(hosts) as ray,
    ):
        pool.make_ready(0)
        stream = Stream(pool.running(0).server)
        with stream.flowing():
            time.sleep(_WARM_UP_S)
            for block in range(blocks):
                ratios.append(log_ratio(stream, ray, is_first=block % 2 == 0))
                if len(ratios) % 20 == 0:
                    click.echo(f"{len(ratios)} blocks: {said(ratios, hosts)}")
        share = share_of_a_processor(ray)
    click.echo(f"{len(ratios)} blocks; tokens a second with / without: {said(ratios, hosts)}")
    click.echo(f"beside an idle engine a host takes {share / hosts:.2%} of a processor")


if __name__ == "__main__":
    main()
