"""Ways to the other parts of a long list."""

from hybridwatch.views.address import Address
from hybridwatch.views.document import Inline, Line, Link


def pager(page: int, pages: int, told: str, here: Address, words: tuple[str, str]) -> Line:
    """Say which part of a list is shown, with links to the ones beside it.

    Args:
        page: Which, from 1.
        pages: How many there are.
        told: What the list holds, such as ``120 runs``.
        here: The view, with its page or without.
        words: What the links to the page before and to the one after say.
    """
    kept = tuple(pair for pair in here.parameters if pair[0] != "page")
    line: list[Inline] = [f"Page {page} of {pages}, {told}"]
    for text, to in zip(words, (page - 1, page + 1), strict=True):
        if 1 <= to <= pages:
            more = (("page", str(to)),) if to > 1 else ()
            line += [" · ", Link(text, Address(here.screen, (*kept, *more)))]
    return tuple(line)
