"""A round of ``notify``, for the verb and for the verbs that end with one."""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from hybridwatch.analysis.policy import Policy
from hybridwatch.analysis.wording.labels import plural
from hybridwatch.database.connection import Database, find_database_url
from hybridwatch.database.decisions import TRIAGE_VARIABLE
from hybridwatch.database.queries import open_index
from hybridwatch.errors import HybridwatchError, NotifyError
from hybridwatch.integrations.notify.channels import CHANNELS_FILE, Channels, read_channels
from hybridwatch.integrations.notify.gather import TopicPlace
from hybridwatch.integrations.notify.sending import Outbox, Sender, Sent, open_client, tell
from hybridwatch.orchestration.nightly.checkout import checkout_here
from hybridwatch.system.console_text import say
from hybridwatch.system.home import home_or_shipped


def channels_here() -> Channels | None:
    """Read the channels of the home; ``None`` where it has no such file.

    Raises:
        NotifyError: The file is wrong.
    """
    path = home_or_shipped() / CHANNELS_FILE
    return read_channels(path) if path.is_file() else None


def open_outbox(results: Path) -> Outbox:
    """Open the outbox of a results folder.

    Raises:
        NotifyError: There is no such folder.
    """
    if not results.is_dir():
        raise NotifyError(f"{results}: expected a results folder, found none")
    return Outbox(Database(find_database_url(results), NotifyError))


def find_place(results: Path, channels: Channels, policy: Policy) -> TopicPlace:
    """Look at a results folder.

    Args:
        results: The folder.
        channels: Say where the dashboard is.
        policy: What judges.
    """
    return TopicPlace(
        results=results,
        index=open_index(results),
        checkout=replace(checkout_here(), policy=policy),
        triage=os.environ.get(TRIAGE_VARIABLE, ""),
        dashboard=channels.dashboard,
    )


def build_sender(outbox: Outbox, channels: Channels) -> Sender:
    """Give what sends."""
    return Sender(outbox, lambda channel: open_client(channel, channels))


def tell_at_the_end(
    channels: Channels | None, results: Path, policy: Policy, *, err: bool = False
) -> bool:
    """Send what is new at the end of another verb, whose own answer is not to be lost.

    Args:
        channels: Who is to hear; ``None`` for nobody.
        results: The results folder.
        policy: What judges.
        err: Whether to speak on standard error.

    Returns:
        Whether everything got through.
    """
    if channels is None:
        return True
    try:
        outbox = open_outbox(results)
        look = partial(find_place, results, channels, policy)
        found = tell(build_sender(outbox, channels), channels.all, look)
    except HybridwatchError as error:
        say(f"notify: {error}", err=err)
        return False
    say(*(f"notify: {line}" for line in render_lines(found)), err=err)
    return not any(one.waiting for one in found)


def render_lines(found: Sequence[Sent]) -> list[str]:
    """Say what became of each channel."""
    lines: list[str] = []
    for one in found:
        if one.sent or one.waiting:
            waiting = f", {len(one.waiting)} kept to be sent again" if one.waiting else ""
            counted = plural(len(one.sent), "message")
            lines.append(f"{one.kind} {one.channel}: {counted} sent{waiting}")
        lines += [f"  sent: {message.headline}" for message in one.sent]
        lines += [f"  kept: {message.headline}" for message in one.waiting]
        lines += [f"  trouble: {trouble}" for trouble in one.troubles]
    return lines or [f"nothing new for {plural(len(found), 'channel')}"]
