"""The nights one after the other, as a person on duty would have met them.

The records are read and judged once. What an index holds of a night are the records up to it: the
database numbers them in the order of time, and an index never sees a higher number than it was
made with. ``test_planted_world`` holds one night against a folder that ends there.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from sqlalchemy import select

from hybridwatch.analysis.alerts import AlertGroup
from hybridwatch.database.connection import Database, file_url
from hybridwatch.database.queries import Index, open_index
from hybridwatch.database.schema import RECORD
from hybridwatch.errors import NotifyError
from hybridwatch.history.alerts import find_groups
from hybridwatch.history.checkout import Checkout
from hybridwatch.integrations.notify.channels import Slack
from hybridwatch.integrations.notify.gather import TopicPlace, gather_topics
from hybridwatch.integrations.notify.news import Message
from hybridwatch.integrations.notify.sending import Outbox
from hybridwatch.pages.screens import ScreenSource
from hybridwatch.records.file_parts import parse_start
from tests.planted_world.plan import World, morning, read_truth

CHECKOUT: Final = Checkout()
_CHANNEL: Final = Slack(name="duty", url_from="DUTY")


@dataclass(frozen=True, eq=False)  # compared by what it is: hashing what it holds takes long
class Morning:
    """What the product says on the morning after a night.

    Attributes:
        messages: What ``notify`` sends.
    """

    night: int
    source: ScreenSource
    alerts: tuple[AlertGroup, ...]
    messages: tuple[Message, ...]


@dataclass(frozen=True, eq=False)  # compared by what it is: hashing what it holds takes long
class Replay:
    """A world and its mornings."""

    world: World
    mornings: tuple[Morning, ...]

    @property
    def end(self) -> Morning:
        """The last one."""
        return self.mornings[-1]

    @cached_property
    def index(self) -> Index:
        """Everything there is."""
        return self.end.source.index


def replay(results: Path, since: int = 0) -> Replay:
    """Go through the nights of a world; the folder's database is made if it is not there.

    Args:
        results: The world's records.
        since: Mornings before this night stay without alerts and messages, which saves time.
    """
    world = read_truth(results)
    with _outbox() as outbox:
        mornings = tuple(
            _morning(night, source, outbox) if night >= since else Morning(night, source, (), ())
            for night, source in enumerate(sources_of(results))
        )
    return Replay(world, mornings)


def sources_of(results: Path) -> Iterator[ScreenSource]:
    """Give the folder as it was on the morning after each night."""
    whole, world = open_index(results), read_truth(results)
    last = _last_records(whole, world)
    for night in range(world.nights):
        yield ScreenSource(
            results, _as_of(whole, last[night]), morning(night), checkout=lambda: CHECKOUT
        )


def cut_off(results: Path, night: int, folder: Path) -> Path:
    """Copy a folder as it was after a night."""
    world = read_truth(results)
    for record in (results / "records").rglob("*.*"):
        if world.night_of(parse_start(record.name)) <= night:
            copy = folder / record.relative_to(results)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(record, copy)
    return folder


def _morning(night: int, source: ScreenSource, outbox: Outbox) -> Morning:
    alerts = find_groups(source.results, source.index, CHECKOUT, source.now)
    return Morning(night, source, alerts, tuple(_messages(source, outbox, source.now)))


def _messages(source: ScreenSource, outbox: Outbox, now: datetime) -> Iterator[Message]:
    """Find what is news, and keep it for heard, as ``notify`` does."""
    topics = gather_topics(TopicPlace(source.results, source.index, CHECKOUT), now)
    steps = outbox.plan(_CHANNEL, topics, now)
    outbox.keep(steps, silently=True)
    yield from (step.message for step in steps if step.message is not None)


@contextmanager
def _outbox() -> Iterator[Outbox]:
    with TemporaryDirectory() as folder:
        database = Database(file_url(Path(folder) / "outbox.sqlite"), NotifyError)
        outbox = Outbox(database)
        outbox.keep([])
        yield outbox
        database.close()


def _last_records(index: Index, world: World) -> Mapping[int, int]:
    """Number the newest record of each night, and see to it that they are in order of time."""
    with index.database.reading() as connection:
        rows = connection.execute(select(RECORD.c.id, RECORD.c.path)).all()
    nights = {number: world.night_of(parse_start(Path(path).name)) for number, path in rows}
    in_order = [nights[number] for number in sorted(nights)]
    assert in_order == sorted(in_order), "the database was not made at once: remove it"
    last, found = 0, {}
    for night in range(world.nights):
        last = max((number for number, at in nights.items() if at == night), default=last)
        found[night] = last
    return found


def _as_of(whole: Index, last: int) -> Index:
    index = Index(whole.results, whole.database, whole._listed, whole._rules)
    index._newest[0] = last
    return index
