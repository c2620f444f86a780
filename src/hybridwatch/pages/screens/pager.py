"""Long lists in parts, with ways from one to the next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, Generic, TypeVar

from hybridwatch.pages.address import Address
from hybridwatch.pages.document import Inline, Link, Paragraph
from hybridwatch.pages.query import ViewQuery

_ROWS: Final = 50
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PagePart(Generic[T]):
    """The part of a list that is asked for."""

    shown: Sequence[T]
    page: int
    pages: int

    def ways(self, contents: str, here: Address, words: tuple[str, str]) -> Iterator[Paragraph]:
        """Say which part is shown, with links to the parts next to it; nothing where it is all.

        ``contents`` is what the list holds, such as ``120 runs``; ``words`` are what the links to
        the page before and to the one after say.
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
    """Give the part of a list that the address asks for, else the first."""
    pages = max(1, ceil(len(rows) / _ROWS))
    page = query.whole("Page", "page", 1, 1, pages)
    return PagePart(rows[(page - 1) * _ROWS : page * _ROWS], page, pages)
