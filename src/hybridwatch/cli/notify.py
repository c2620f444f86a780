"""``hybridwatch notify``: send what changed since it was last sent; others end with it."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from hybridwatch.analysis.policy import Policy
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.cli.options import FILE, leave, print_json, takes_json, takes_results, verb
from hybridwatch.cli.terminal import say
from hybridwatch.database.connection import Database, find_database_url
from hybridwatch.database.queries import open_index
from hybridwatch.errors import HybridwatchError, NotifyError
from hybridwatch.integrations.notify.channels import CHANNELS_FILE, Channels, read_channels
from hybridwatch.integrations.notify.gather import TopicPlace
from hybridwatch.integrations.notify.sending import (
    Outbox,
    Sender,
    Sent,
    chosen_channels,
    open_client,
    preview,
    skip,
    tell,
)
from hybridwatch.orchestration.nightly.checkout import checkout_here, takes_policy
from hybridwatch.records.store.layout import require_folder
from hybridwatch.system.home import home_or_shipped


def channels_here() -> Channels | None:
    """Read the channels of the home; ``None`` where it has no such file."""
    path = home_or_shipped() / CHANNELS_FILE
    return read_channels(path) if path.is_file() else None


def open_outbox(results: Path) -> Outbox:
    """Open the outbox of a results folder, which has to be there."""
    require_folder(results)
    return Outbox(Database(find_database_url(results), NotifyError))


def _find_place(results: Path, channels: Channels, policy: Policy) -> TopicPlace:
    return TopicPlace(
        results=results,
        index=open_index(results),
        checkout=replace(checkout_here(), policy=policy),
        dashboard=channels.dashboard,
    )


def _build_sender(outbox: Outbox, channels: Channels) -> Sender:
    return Sender(outbox, lambda channel: open_client(channel, channels))


def tell_at_the_end(
    channels: Channels | None, results: Path, policy: Policy, *, err: bool = False
) -> bool:
    """Send what is new at the end of another verb; gives whether everything got through."""
    if channels is None:
        return True
    try:
        outbox = open_outbox(results)
        look = partial(_find_place, results, channels, policy)
        found = tell(_build_sender(outbox, channels), channels.all, look)
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


@verb("notify", "--dry-run", "", "--channel team --json", "notify.toml --skip")
@click.argument("file", required=False, type=FILE)
@click.option(
    "--channel", "names", multiple=True, metavar="NAME", help="Only this one; may be repeated."
)
@takes_results("Folder whose records have the alerts, and whose database has the outbox.")
@takes_policy
@click.option("--dry-run", is_flag=True, help="Print what would be sent; send and keep nothing.")
@click.option("--skip", "skips", is_flag=True, help="Mark what is new as read, and send nothing.")
@takes_json()
def command(
    *,
    file: Path | None,
    names: tuple[str, ...],
    results: Path,
    policy: Policy,
    dry_run: bool,
    skips: bool,
    as_json: bool,
) -> None:
    """Send what changed since the last call: an alert that opened, grew worse, came back or ended.

    FILE names the channels (docs/notify.md); it is notify.toml of the home, if it is not named. One
    message stands for one cause. What does not get through is kept and sent with the next call; the
    exit status is then 1.
    """
    if dry_run and skips:
        raise click.UsageError("--dry-run keeps nothing, --skip does: give one of them.")
    channels = read_channels(file or home_or_shipped() / CHANNELS_FILE)
    wanted = chosen_channels(channels, names)
    outbox, look = open_outbox(results), partial(_find_place, results, channels, policy)
    for name, count in outbox.orphaned([one.name for one in channels.all]).items():
        counted = plural(count, "message")
        say(f"{counted} for {name}, which is no channel of {channels.path} any more", err=True)
    if dry_run:
        _show(preview(outbox, wanted, look()), as_json=as_json)
    elif skips:
        count = skip(outbox, wanted, look)
        say(f"{plural(count, 'message')} marked as read", err=as_json)
        if as_json:
            print_json(notify_to_json([]))
    else:
        found = tell(_build_sender(outbox, channels), wanted, look)
        if as_json:
            print_json(notify_to_json(found))
        else:
            say(*render_lines(found))
        leave(bad_news=any(one.waiting for one in found))


def _show(found: Sequence[Sent], *, as_json: bool) -> None:
    if as_json:
        print_json(notify_to_json(found))
        return
    for one in found:
        counted = plural(len(one.new), "new message")
        say(f"{one.kind} {one.channel}: {counted}, {len(one.waiting)} waiting")
        for message in one.waiting:
            say(f"  waiting: {message.line}: {message.trouble or 'not tried yet'}")
        for message in one.new:
            say(f"  new: {message.line}")


def notify_to_json(found: Sequence[Sent]) -> dict[str, Any]:
    """Give what became of each channel, or what would (``docs/json.md``)."""
    return {"schema_version": 1, "channels": [_channel_json(one) for one in found]}


def _channel_json(one: Sent) -> dict[str, Any]:
    by_state = {"sent": one.sent, "waiting": one.waiting, "new": one.new}
    return {
        "channel": one.channel,
        "kind": one.kind,
        "troubles": one.troubles,
        "messages": [
            {**message.to_json(), "state": state, "trouble": message.trouble}
            for state, messages in by_state.items()
            for message in messages
        ],
    }
