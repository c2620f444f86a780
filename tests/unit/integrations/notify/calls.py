"""Starts calls of ``notify`` that can be killed, each a process of its own.

::

    python -m tests.unit.integrations.notify.calls RESULTS FILE

It loads everything once. For a line that it reads it starts a call, by ``fork``, and prints its
process id; the line is the step at which the call kills itself, 0 for none (``tests.waiting``).
For the next line it waits for its end and prints its exit status (negative: the signal
that ended it). Until then the id is nobody else's.
"""

import os
import sys
from functools import partial
from pathlib import Path

from hybridwatch.cli.notify import open_outbox
from hybridwatch.database.queries import open_index
from hybridwatch.history.checkout import Checkout
from hybridwatch.integrations.notify.channels import Channels, read_channels
from hybridwatch.integrations.notify.gather import TopicPlace
from hybridwatch.integrations.notify.sending import Sender, open_client, tell
from tests.waiting import strike_at

BUSY = 1


def call(results: Path, channels: Channels) -> int:
    """Tell what is new, as the verb does, without its pauses."""
    outbox = open_outbox(results)
    sender = Sender(outbox, partial(open_client, channels=channels), sleep=lambda _: None)
    found = tell(sender, channels.all, lambda: TopicPlace(results, open_index(results), Checkout()))
    return BUSY if any(one.waiting for one in found) else 0


def main(results: Path, channels: Channels) -> None:
    """Start a call for each line."""
    while line := sys.stdin.readline():
        child = os.fork()
        if child == 0:
            status = 99
            try:
                if line != "0\n":
                    strike_at(int(line))
                status = call(results, channels)
            finally:
                sys.stderr.flush()
                os._exit(status)
        print(child, flush=True)  # noqa: T201
        sys.stdin.readline()
        _, ended = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(ended), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), read_channels(Path(sys.argv[2])))
