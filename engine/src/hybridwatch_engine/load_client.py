"""vLLM's own serving benchmark client, kept running so that a trial does not pay for its import.

Reads one JSON list of command-line arguments per line on standard input, runs the client with
them, and answers one JSON line on standard output: ``{"ok": true}`` when it is ready, ``{"ok":
true, "received": [48, ...]}`` after a load, or ``{"ok": false, "error": ...}``. What vLLM and the
client print goes to standard error. The measurement is the client's, in the file that
``--result-filename`` names. vLLM's client believes the number of tokens that the server names at
the end of each stream; ``received`` has those that came, request by request in no order.

With ``--dataset-name custom`` the requests of ``--dataset-path`` are replayed, JSONL with
``prompt`` (token ids), ``max_tokens``, ``delay_s`` and ``after``: seconds from the begin, or from
the answer to an earlier request by its number. The client gets all at once, and each waits for its
time; ``late`` has the seconds by which each was sent after it.
"""

import asyncio
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

from hybridwatch_engine.patch import Patch


def count_tokens(messages: Iterable[str]) -> int:
    """Count the token ids in the messages of a stream of server-sent events.

    A message may have several (drafts that were accepted), and a token no text: a special one, or
    part of a character.
    """
    events = (
        message.removeprefix("data: ") for message in messages if message.startswith("data: ")
    )
    chunks = (json.loads(text) for text in events if text != "[DONE]")
    choices = (choice for chunk in chunks for choice in chunk.get("choices") or ())
    return sum(len(choice.get("token_ids") or ()) for choice in choices)


_Sending = Callable[..., Coroutine[Any, Any, Any]]


class StreamKeeper:
    """Keeps what vLLM's client is streamed, to be counted when nothing is timed any more."""

    def __init__(self) -> None:
        self._streams: list[list[str]] = []

    def keeping(self, handler: type) -> type:
        """Make vLLM's ``StreamedResponseHandler``, of which each request has one, keep messages."""
        streams = self._streams

        class Keeping(handler):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self._kept: list[str] = []
                streams.append(self._kept)

            def add_chunk(self, chunk_bytes: bytes) -> list[str]:
                messages: list[str] = super().add_chunk(chunk_bytes)
                self._kept += messages
                return messages

        return Keeping

    def counts(self) -> list[int]:
        """Give the number of tokens of each stream since ``forget``."""
        return [count_tokens(messages) for messages in self._streams]

    def forget(self) -> None:
        """Keep no stream any more."""
        self._streams.clear()


_LEAD_S = 0.0001
"""For each request, before the first is due: until then all of them are waiting."""


class Replayer:
    """Sends the requests of a file when they are due."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._answered: list[asyncio.Event] = []
        self._late: list[float] = []
        self._begin: float | None = None

    def reading(self, make: Callable[..., Any]) -> Callable[[Any], Any]:
        """Say how ``get_samples`` of vLLM's client is replaced; ``make`` is its request's type."""

        def replace(get_samples: Callable[..., Any]) -> Callable[..., Any]:
            def list_ours(args: Any, *others: Any, **named: Any) -> Any:
                if args.dataset_name == "custom":
                    return self.list_samples(args.dataset_path, make)
                return get_samples(args, *others, **named)

            return list_ours

        return replace

    def list_samples(self, file: str, make: Callable[..., Any]) -> list[Any]:
        """Read a file, and make a request of vLLM's client of each line, to be sent in time."""
        text = Path(file).read_text(encoding="utf-8")
        self._rows = [json.loads(line) for line in text.splitlines()]
        self._answered = [asyncio.Event() for _ in self._rows]
        self._late, self._begin = [0.0] * len(self._rows), None
        return [
            make(
                prompt=row["prompt"],
                prompt_len=len(row["prompt"]),
                expected_output_len=row["max_tokens"],
                request_id=f"trace-{number}",
            )
            for number, row in enumerate(self._rows)
        ]

    def waiting(self, send: _Sending) -> _Sending:
        """Make a function of vLLM's client that sends a request wait until it is due."""

        async def send_when_due(request_func_input: Any, *args: Any, **others: Any) -> Any:
            if not self._rows:
                return await send(request_func_input, *args, **others)
            number = int(request_func_input.request_id.rpartition("-")[2])
            if self._begin is None:
                self._begin = time.perf_counter() + _LEAD_S * len(self._rows)
            begin = self._begin
            after = self._rows[number]["after"]
            if after is not None:
                await self._answered[after].wait()
                begin = time.perf_counter()
            due = begin + self._rows[number]["delay_s"]
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            self._late[number] = max(0.0, time.perf_counter() - due)
            try:
                return await send(request_func_input, *args, **others)
            finally:
                self._answered[number].set()

        return send_when_due

    def take_lateness(self) -> list[float]:
        """Give the lateness of each request, seconds, and wait for no later one any more."""
        late, self._rows, self._late = self._late, [], []
        return [round(seconds, 6) for seconds in late]


def _run(
    parser: Any, serve: Any, keeper: StreamKeeper, replayer: Replayer, line: str
) -> dict[str, Any]:
    try:
        serve.main(parser.parse_args(json.loads(line)))
        return {"ok": True, "received": keeper.counts(), "late": replayer.take_lateness()}
    except (Exception, SystemExit) as error:  # noqa: BLE001 - reported; the process serves on
        traceback.print_exc()
        return {"ok": False, "error": f"{type(error).__name__}: {error}"}
    finally:
        keeper.forget()
        replayer.take_lateness()


def main() -> None:
    """Serve until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # vLLM logs to standard output as soon as it is imported
    from vllm.benchmarks import serve
    from vllm.benchmarks.lib import endpoint_request_func
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = FlexibleArgumentParser()
    serve.add_cli_args(parser)
    keeper, replayer = StreamKeeper(), Replayer()
    Patch(serve, "get_samples", replayer.reading(serve.SampleRequest)).install()
    senders = endpoint_request_func.ASYNC_REQUEST_FUNCS
    senders["openai"] = replayer.waiting(senders["openai"])
    Patch(endpoint_request_func, "StreamedResponseHandler", keeper.keeping).install()
    answers.write(json.dumps({"ok": True}) + "\n")
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(_run(parser, serve, keeper, replayer, line)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
