"""Reads and validates the parameters of an address.

Whatever an address says, a view comes of it: what is unknown, gone or not valid is reported to the
reader, and what the address leaves open is filled in.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from types import MappingProxyType
from typing import Final, Generic, TypeVar

from hybridwatch.errors import MissingError
from hybridwatch.pages.address import Address
from hybridwatch.pages.document import ChoiceField, Inline, Line, Link, Paragraph

_LONGEST: Final = 80
"""Characters of a refused value that are shown."""
PAGE_ROWS: Final = 50
"""Rows of a list that one page shows."""
T = TypeVar("T")


class NotInStoreError(MissingError):
    """A view is about something that is not in the store; ``instead`` says what there is."""

    def __init__(self, label: str, wanted: str, instead: tuple[Line, ...]) -> None:
        super().__init__(_unknown(label, wanted))
        self.title = f"No such {label.lower()}"
        self.instead = instead


class ViewQuery:
    """An address as a screen reads it: each question gives something valid, always.

    What was read makes the whole address; what was never read is reported as unknown.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self._read: list[str] = []
        self._resolved: list[tuple[str, str]] = []
        self._complaints: list[str] = []

    def one(
        self, label: str, parameter: str, options: Mapping[str, str], default: str | None = None
    ) -> ChoiceField:
        """Read a choice of one; ``options`` have the reader's word for each value.

        A ``default`` is left out of the address. Without, the first option holds, and is put into
        it: what comes first today may not tomorrow.
        """
        fallback = next(iter(options), "") if default is None else default
        wanted = self._single(parameter)
        if wanted is not None and wanted not in options:
            self._complain(label, wanted)
            wanted = None
        chosen = fallback if wanted is None else wanted
        if chosen in options and chosen != default:
            self._resolved.append((parameter, chosen))
        picked = (chosen,) if chosen in options else ()
        return ChoiceField(label, parameter, options, picked, default=default)

    def subject(
        self,
        label: str,
        parameter: str,
        options: Mapping[str, str],
        instead: tuple[Line, ...],
        default: str | None = None,
    ) -> ChoiceField:
        """Read what the whole view is about, as ``one``.

        Raises:
            NotInStoreError: The address names what is not among the options.
        """
        for wanted in self.address.values(parameter)[-1:]:
            if options and wanted not in options:
                raise NotInStoreError(label, wanted, instead)
        return self.one(label, parameter, options, default)

    def many(
        self,
        label: str,
        parameter: str,
        options: Mapping[str, str],
        also: Mapping[str, str] = MappingProxyType({}),
    ) -> ChoiceField:
        """Read a choice of any number; none means all. A link may use the words of ``also``."""
        wanted = dict.fromkeys(also.get(word, word) for word in self._all(parameter))
        for each in wanted:
            if each not in options:
                self._complain(label, each)
        chosen = tuple(each for each in wanted if each in options)
        self._resolved += [(parameter, each) for each in chosen]
        return ChoiceField(label, parameter, options, chosen, many=True)

    def text(self, parameter: str) -> str:
        """Read a text; empty without the parameter."""
        wanted = (self._single(parameter) or "").strip()
        if wanted:
            self._resolved.append((parameter, wanted))
        return wanted

    def page(self, pages: int) -> int:
        """Read which part of a list to show, else the first."""
        wanted = self._single("page")
        if wanted is None:
            return 1
        if not (wanted.isascii() and wanted.isdecimal() and 1 <= int(wanted[:18]) <= pages):
            expected = f"expected a number from 1 to {pages}"
            self._complaints.append(f"The link names page {_quoted(wanted)}; {expected}.")
            return 1
        if int(wanted) != 1:
            self._resolved.append(("page", str(int(wanted))))
        return int(wanted)

    def expand(self, parameter: str, whole: str) -> None:
        """Complete a value of which the address has the beginning."""
        pairs = self.address.parameters
        kept = tuple((name, whole if name == parameter else value) for name, value in pairs)
        self.address = Address(self.address.screen, kept)

    def forget(self, parameter: str) -> None:
        """Drop a parameter that has no meaning next to another choice."""
        self.address = self.address.without(parameter)

    def resolved(self) -> Address:
        """Give the whole address: what was read, with what was filled in."""
        return Address(self.address.screen, tuple(self._resolved))

    def complaints(self) -> tuple[str, ...]:
        """Parameters that cannot be honoured, a line each."""
        ignored = (
            f"The link says {_quoted(name)}, which this view does not know."
            for name in dict(self.address.parameters)
            if name not in self._read
        )
        return (*self._complaints, *ignored)

    def _single(self, parameter: str) -> str | None:
        found = self._all(parameter)
        if len(found) > 1:
            self._complaints.append(f"The link says {parameter} more than once; the last holds.")
        return found[-1] if found else None

    def _all(self, parameter: str) -> tuple[str, ...]:
        self._read.append(parameter)
        return self.address.values(parameter)

    def _complain(self, label: str, wanted: str) -> None:
        self._complaints.append(_unknown(label, wanted))


def name_options(names: Iterable[str]) -> dict[str, str]:
    """Make options of names, sorted, shown as they are."""
    return {name: name for name in sorted(set(names))}


def _unknown(label: str, wanted: str) -> str:
    return f"The link names {label.lower()} {_quoted(wanted)}, which is not in this store."


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _LONGEST else text[:_LONGEST] + "…")


@dataclass(frozen=True, slots=True)
class PagePart(Generic[T]):
    """The part of a list to show."""

    shown: Sequence[T]
    page: int
    pages: int

    def ways(self, contents: str, here: Address, words: tuple[str, str]) -> Iterator[Paragraph]:
        """Say which part is shown, with links to the parts next to it; nothing where it is all.

        ``contents`` is what the list holds, such as ``120 runs``.
        """
        if self.pages == 1:
            return
        kept = here.without("page").parameters
        line: list[Inline] = [f"Page {self.page} of {self.pages}, {contents}"]
        for text, to in zip(words, (self.page - 1, self.page + 1), strict=True):
            if 1 <= to <= self.pages:
                more = (("page", str(to)),) if to > 1 else ()
                line += [" · ", Link(text, Address(here.screen, (*kept, *more)))]
        yield Paragraph(tuple(line), quiet=True)


def find_page(rows: Sequence[T], query: ViewQuery) -> PagePart[T]:
    """Give the part of a list that the address names, else the first."""
    pages = max(1, ceil(len(rows) / PAGE_ROWS))
    page = query.page(pages)
    return PagePart(rows[(page - 1) * PAGE_ROWS : page * PAGE_ROWS], page, pages)
