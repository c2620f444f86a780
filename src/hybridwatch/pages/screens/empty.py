"""What screens say when there is nothing to show, or something that cannot be."""

from collections.abc import Sequence

from hybridwatch.analysis.wording.labels import plural
from hybridwatch.history.checkout import Checkout
from hybridwatch.pages.document import Block, Command, FieldKind, Notice, Paragraph
from hybridwatch.pages.screens.screen import ScreenSource
from hybridwatch.records.store import Broken


def broken_notice(broken: Sequence[Broken]) -> Notice:
    """Name what could not be read, loudly."""
    title = f"{plural(len(broken), 'record')} could not be read"
    return Notice(FieldKind.LOUD, title, tuple(f"{b.path.name}: {b.reason}" for b in broken))


def broken_in(source: ScreenSource) -> tuple[Notice, ...]:
    """Name what could not be read of a store; nothing when all of it could."""
    if not source.index.counts["broken"]:
        return ()
    frame = source.index.broken()
    found = [
        Broken(source.results / record, reason)
        for record, reason in zip(frame["record"], frame["reason"], strict=True)
    ]
    return (broken_notice(found),)


def empty_store(source: ScreenSource) -> tuple[Block, ...]:
    """Say what to do when there is nothing to show."""
    broken = broken_in(source)
    state = "No run can be read." if broken else "No runs yet."
    hint = f"{state} Measure the smoke scenarios first; it takes a few minutes:"
    return (*broken, Paragraph(hint), Command("make run"))


def checkout_notice(checkout: Checkout) -> tuple[Notice, ...]:
    """Name what could not be read of the checkout; nothing when all of it could."""
    title = "The checkout could not be read in full"
    return (Notice(FieldKind.QUIET, title, checkout.problems),) if checkout.problems else ()
