"""Measures how late the requests of a trace arrive, at a server that only notes when they came.

    python -m hybridwatch_lab.traces.lateness --build cpu-0.31.0

The load client in the build's own Python sends a trace of 1,000 requests, made here, to a server in
a process of its own, which answers at once. The error of a request is the time between its begin
of the trace and what the trace says, as the server sees it, less that of the first one.
"""

import argparse
import asyncio
import json
import math
import multiprocessing
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median, quantiles
from types import SimpleNamespace
from typing import Any, Final, cast

from hybridwatch.engines.builds import DEFAULT_BUILD, parse_label
from hybridwatch.engines.launch import Launch
from hybridwatch.engines.load_client import LoadClient
from hybridwatch.engines.server import Server
from hybridwatch.scenarios.engine import EngineArgs
from hybridwatch.scenarios.trace import fill_in
from hybridwatch.scenarios.workload import Workload
from hybridwatch.system.home import home

_END: Final = b"data: [DONE]\n\n"
_TIMEOUT_S: Final = 300.0
_GAP_MS: Final = 20.0
"""Between two requests on average: 50 a second."""


def write_trace(file: Path, requests: int) -> None:
    """Write a trace whose gaps are those of a Poisson process, by a low-discrepancy sequence."""
    at_ms, rows = 0.0, []
    for number in range(requests):
        row = {"timestamp": round(at_ms), "input_length": 64, "output_length": 4}
        rows.append(f"{json.dumps(row)}\n")
        at_ms -= _GAP_MS * math.log(1 - (number * 0.618034 + 0.5) % 1)
    file.write_text("".join(rows), encoding="utf-8")


async def _serve(found: Connection) -> None:
    came: dict[int, float] = {}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            at, head = time.perf_counter(), [line]
            while (more := await reader.readline()).strip():
                head.append(more)
            fields = dict(one.decode().lower().split(": ", 1) for one in head[1:])
            body = await reader.readexactly(int(fields.get("content-length", 0)))
            if not line.startswith(b"POST"):
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                continue
            came[int(fields["x-request-id"].rpartition("-")[2])] = at
            text = _stream(json.loads(body)["max_tokens"])
            kind = b"Content-Type: text/event-stream\r\nConnection: close\r\n"
            writer.write(b"HTTP/1.1 200 OK\r\n" + kind + b"\r\n" + text)
            await writer.drain()
            break
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
    found.send(server.sockets[0].getsockname()[1])
    while not await asyncio.to_thread(found.poll, 0.2):
        pass
    server.close()
    found.send(came)


def _stream(tokens: int) -> bytes:
    chunk = {"choices": [{"index": 0, "text": "a", "token_ids": [7]}]}
    usage = {"choices": [], "usage": {"prompt_tokens": 64, "completion_tokens": tokens}}
    rows = [*[chunk] * tokens, usage]
    return b"".join(f"data: {json.dumps(row)}\n\n".encode() for row in rows) + _END


def _run_server(found: Connection) -> None:
    asyncio.run(_serve(found))


def _receive(ours: Connection) -> Any:
    if not ours.poll(_TIMEOUT_S):
        raise TimeoutError(f"the server said nothing within {_TIMEOUT_S:g} s")
    return ours.recv()


def measure(build: str, requests: int, speed: float) -> dict[str, Any]:
    """Replay a made trace once; seconds by the server's clock and by the client's."""
    spec = parse_label(build).spec
    model = home() / "models" / "tiny-hybrid"
    args = {"dtype": "float32", "max_model_len": 512, "max_num_seqs": 8}
    engine = EngineArgs.model_validate(
        {**args, "cudagraph_mode": "NONE", "cudagraph_capture_sizes": ()}
    )
    launch = Launch(spec.interpreter, model, model.name, engine, False, {}, spec.env, {})
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_run_server, args=(theirs,))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_trace(folder / "made.jsonl", requests)
        trace = {"file": "made.jsonl", "speed": speed}
        content = fill_in({"seed": 1, "trace": trace}, [folder], "made")
        load = Workload.model_validate(content).generation
        process.start()
        client = LoadClient(launch, folder / "client.log")
        try:
            url = f"http://127.0.0.1:{_receive(ours)}"
            server = cast("Server", SimpleNamespace(url=url, error=RuntimeError))
            result = client.run(server, load, folder / "result.json", _TIMEOUT_S)
            ours.send("end")
            came: dict[int, float] = _receive(ours)
        finally:
            client.stop()
            process.terminate()
    assert load.replay is not None  # noqa: S101 - of a trace
    due = [one.delay_s for one in load.replay.trace]
    errors = [abs(came[at] - came[0] - due[at]) for at in range(1, requests)]
    return {
        "requests": requests,
        "seconds": max(due),
        "error_at_server": _describe(errors),
        "send_lateness": _describe(result["send_lateness"]),
    }


def _describe(seconds: list[float]) -> dict[str, float]:
    found = {"median": median(seconds), "p99": quantiles(seconds, n=100)[98], "most": max(seconds)}
    return {name: round(value, 5) for name, value in found.items()}


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m hybridwatch_lab.traces.lateness")
    parser.add_argument("--build", default=DEFAULT_BUILD)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--speed", type=float, default=1.0)
    chosen = parser.parse_args()
    print(json.dumps(measure(chosen.build, chosen.requests, chosen.speed), indent=2))  # noqa: T201


if __name__ == "__main__":
    main()
