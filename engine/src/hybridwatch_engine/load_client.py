"""vLLM's own serving benchmark client, kept running so that a trial does not pay for its import.

Reads one JSON list of command-line arguments per line on standard input, runs the client with
them, and answers one JSON line on standard output: ``{"ok": true}`` when it is ready, ``{"ok":
true, "received": [48, ...]}`` after a load, or ``{"ok": false, "error": ...}``. What vLLM and the
client print goes to standard error. The measurement is the client's, in the file that
``--result-filename`` names. vLLM's client believes the number of tokens that the server names at
the end of each stream; ``received`` has those that came, request by request in no order.
"""

import json
import os
import sys
import traceback
from collections.abc import Iterable
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


def _run(parser: Any, serve: Any, keeper: StreamKeeper, line: str) -> dict[str, Any]:
    try:
        serve.main(parser.parse_args(json.loads(line)))
        return {"ok": True, "received": keeper.counts()}
    except (Exception, SystemExit) as error:  # noqa: BLE001 - reported; the process serves on
        traceback.print_exc()
        return {"ok": False, "error": f"{type(error).__name__}: {error}"}
    finally:
        keeper.forget()


def main() -> None:
    """Serve until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # vLLM logs to standard output as soon as it is imported
    from vllm.benchmarks import serve
    from vllm.benchmarks.lib import endpoint_request_func
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = FlexibleArgumentParser()
    serve.add_cli_args(parser)
    keeper = StreamKeeper()
    Patch(endpoint_request_func, "StreamedResponseHandler", keeper.keeping).install()
    answers.write(json.dumps({"ok": True}) + "\n")
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(_run(parser, serve, keeper, line)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
