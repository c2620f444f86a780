"""Bodies made to bring the server down, against a real one with little memory."""

import gzip
import hashlib
import json
import os
import random
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from hybridwatch.database.tokens import Scope
from hybridwatch.records.codec import encode
from hybridwatch.records.file_parts import render_sealed
from hybridwatch.records.store import list_records, read_run
from tests.builders import BASELINE, NIGHTLY
from tests.unit.api.serving import token_for
from tests.unit.database.stores import add
from tests.waiting import LIMIT_S, own_port, wait_until

MEMORY = 2**30
MOST_ABOVE_MIB = 280
"""300 MB. The first of each kind takes 150 at most; after a thousand the allocator keeps 150."""
MOST_WAIT_S = 2.0
Made = tuple[bytes, bytes | None]


def repeated(before: bytes, piece: bytes, after: bytes) -> Callable[[random.Random, Any], Made]:
    return lambda draw, _: (before + piece * (draw.randint(1, 2**23) // len(piece)) + after, None)


def with_bulk(plain: Callable[[random.Random], bytes]) -> Callable[[random.Random, Any], Made]:
    """Give a record that says of its bulk what is so, whatever that holds."""

    def make(draw: random.Random, raw: Mapping[str, Any]) -> Made:
        content = plain(draw)
        bulk = gzip.compress(content, 1)
        said = {"sha256": hashlib.sha256(bulk).hexdigest(), "lines": max(1, content.count(b"\n"))}
        return render_sealed({**raw, "bulk": {**raw["bulk"], **said}}).encode(), bulk

    return make


KINDS: Mapping[str, Callable[[random.Random, Any], Made]] = {
    "objects": repeated(b'{"x":[', b'{"a":1},', b"1]}"),
    "trials": repeated(b'{"trials":[', b'{"a":1},', b"1]}"),
    "lists": repeated(b"[", b"[],", b"1]"),
    "numbers": repeated(b'{"x":[', b"0.5,", b"1]}"),
    "keys": repeated(b"{", b'"k":1,', b'"l":1}'),
    "levels": repeated(b"", b"[", b""),
    "wide text": repeated('{"x":"😀'.encode(), b"a", b'"}'),
    "backslashes": repeated(b'{"x":"', b"\\", b'"}'),
    "no JSON": lambda draw, _: (draw.randbytes(draw.randint(0, 2**20)), None),
    "bulk of empty lines": with_bulk(lambda draw: b"\n" * draw.randint(1, 250 * 2**20)),
    "bulk of one line": with_bulk(lambda draw: b" " * draw.randint(1, 100 * 2**20)),
    "bulk of objects": with_bulk(
        lambda draw: (
            b'{"trial":0,"client_result":{"x":[' + b'{"a":1},' * draw.randint(1, 2**20) + b"1]}}\n"
        )
    ),
    "bulk of numbers": with_bulk(
        lambda draw: (
            b'{"trial":0,"client_result":{"x":['
            + b"0.123456," * draw.randint(1, 1_900_000)
            + b"1]}}\n"
        )
    ),
}


@dataclass
class Seen:
    """What a server under attack did: MiB above those before, by kind, and its slowest answer."""

    above: dict[str, float] = field(default_factory=dict)
    slowest_s: float = 0.0
    answers: int = 0


def memory(process: int, what: str) -> float:
    """Give MiB of memory that the kernel counts."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 2**10 for line in lines if line.startswith(what))


@contextmanager
def server(results: Path) -> Iterator[tuple[int, str]]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))

    port = own_port()
    words = ["serve", "--api", "--results", str(results), "--port", str(port)]
    process = subprocess.Popen(
        [sys.executable, "-m", "hybridwatch", *words],
        preexec_fn=limit,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        assert process.poll() is None
        try:
            return httpx.get(f"{address}/v1/runs", timeout=LIMIT_S).is_success
        except httpx.TransportError:
            return False

    try:
        wait_until(answers, "a server")
        yield process.pid, address
        assert process.poll() is None
    finally:
        process.terminate()
        process.wait()


def attack(results: Path, count: int) -> Seen:
    """Send bodies of every kind in turn, while somebody else asks a question again and again."""
    draw, seen, over = random.Random(0), Seen(), threading.Event()
    raw = json.loads(encode(read_run(list_records(results)[0])).record)
    shown = token_for(results, Scope.INGEST)
    with server(results) as (process, address):

        def ask() -> None:
            with httpx.Client(timeout=LIMIT_S) as other:
                while not over.wait(0.05):
                    begun = time.monotonic()
                    assert other.get(f"{address}/v1/runs").is_success
                    seen.slowest_s = max(seen.slowest_s, time.monotonic() - begun)
                    seen.answers += 1

        asking = threading.Thread(target=ask)
        asking.start()
        idle = memory(process, "VmRSS")
        try:
            for number in range(count):
                kind = [*KINDS][number % len(KINDS)]
                record, bulk = KINDS[kind](draw, raw)
                Path(f"/proc/{process}/clear_refs").write_text("5")  # the peak so far
                refused = send(address, shown, record, bulk)
                assert 400 <= refused.status_code < 500 or bulk is not None, (kind, refused.text)
                above = memory(process, "VmHWM") - idle
                seen.above[kind] = max(seen.above.get(kind, 0.0), above)
        finally:
            over.set()
            asking.join()
    return seen


def send(address: str, shown: dict[str, str], record: bytes, bulk: bytes | None) -> httpx.Response:
    address = f"{address}/v1/runs"
    if bulk is None:
        headers = {**shown, "content-type": "application/json"}
        return httpx.post(address, content=record, headers=headers, timeout=LIMIT_S)
    files = {"record": ("record", record), "bulk": ("bulk", bulk)}
    return httpx.post(address, files=files, headers=shown, timeout=LIMIT_S)


@pytest.mark.parametrize(
    "count", [len(KINDS), pytest.param(1_000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
def test_no_body_ends_the_server_or_keeps_others_waiting(tmp_path: Path, count: int) -> None:
    add(tmp_path, 1, builds=(BASELINE, NIGHTLY))
    seen = attack(tmp_path, count)
    sys.stdout.write(f"{seen}\n")
    assert max(seen.above.values()) < MOST_ABOVE_MIB, seen
    assert seen.answers
    assert seen.slowest_s < MOST_WAIT_S, seen
