"""``hybridwatch notify``: send what changed since it was last sent."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from hybridwatch.analysis.policy import Policy
from hybridwatch.analysis.wording.labels import plural
from hybridwatch.cli.notify_round import build_sender, find_place, open_outbox, render_lines
from hybridwatch.cli.options import examples, print_json, takes_results
from hybridwatch.integrations.notify.channels import CHANNELS_FILE, Channels, read_channels
from hybridwatch.integrations.notify.sending import (
    Outbox,
    Sent,
    chosen_channels,
    preview,
    skip,
    tell,
)
from hybridwatch.orchestration.nightly.checkout import takes_policy
from hybridwatch.system.console_text import say
from hybridwatch.system.home import home_or_shipped

_BAD_NEWS: Final = 1
_SCHEMA_VERSION: Final = 1


@click.command(
    "notify",
    epilog=examples(
        "hybridwatch notify --dry-run",
        "hybridwatch notify",
        "hybridwatch notify --channel team --json",
        "hybridwatch notify notify.toml --skip",
    ),
)
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--channel", "names", multiple=True, metavar="NAME", help="Only this one; may be repeated."
)
@takes_results("Folder whose records have the alerts, and whose database has the outbox.")
@takes_policy
@click.option("--dry-run", is_flag=True, help="Print what would be sent; send and keep nothing.")
@click.option("--skip", "skips", is_flag=True, help="Take what is new for heard, and send nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (docs/json.md).")
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
    outbox, look = open_outbox(results), partial(find_place, results, channels, policy)
    _name_orphaned(outbox, channels)
    if dry_run:
        _show(preview(outbox, wanted, look()), as_json=as_json)
    elif skips:
        count = skip(outbox, wanted, look)
        say(f"{plural(count, 'message')} marked as read", err=as_json)
        if as_json:
            print_json(notify_to_json([]))
    else:
        _tell(tell(build_sender(outbox, channels), wanted, look), as_json=as_json)


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


def _tell(found: Sequence[Sent], *, as_json: bool) -> None:
    if as_json:
        print_json(notify_to_json(found))
    else:
        say(*render_lines(found))
    if any(one.waiting for one in found):
        raise click.exceptions.Exit(_BAD_NEWS)


def notify_to_json(found: Sequence[Sent]) -> dict[str, Any]:
    """Give what became of each channel, or what would (``docs/json.md``)."""
    return {"schema_version": _SCHEMA_VERSION, "channels": [_channel_json(one) for one in found]}


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


def _name_orphaned(outbox: Outbox, channels: Channels) -> None:
    for name, count in outbox.orphaned([one.name for one in channels.all]).items():
        counted = plural(count, "message")
        say(f"{counted} for {name}, which is no channel of {channels.path} any more", err=True)
