"""What is kept of an index goes with it."""

import gc
import weakref

from hybridwatch.history.runs import cached_per_index


class Index:
    """Stands for an index: only which one it is counts."""


def test_an_index_is_asked_once_until_another_one_is_asked() -> None:
    asked: list[tuple[object, str]] = []

    @cached_per_index
    def ask(index: Index, /, word: str) -> str:
        asked.append((index, word))
        return word.upper()

    first, second = Index(), Index()
    assert [ask(first, "a"), ask(first, "a"), ask(first, "b")] == ["A", "A", "B"]
    assert asked == [(first, "a"), (first, "b")]
    assert ask(second, "a") == "A"
    assert ask(first, "a") == "A"
    assert asked[2:] == [(second, "a"), (first, "a")]


def test_an_index_is_let_go_once_another_one_is_asked() -> None:
    @cached_per_index
    def ask(index: Index, /) -> list[Index]:
        return [index]

    old = Index()
    gone = weakref.ref(old)
    ask(old)
    del old
    gc.collect()
    assert gone() is not None
    ask(Index())
    gc.collect()
    assert gone() is None
