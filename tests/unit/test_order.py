"""In which order tests run: long files first, and in a file last what ends what it shares."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import LIVE, LONGEST_FIRST, TESTS, pytest_collection_modifyitems


@dataclass(frozen=True)
class Item:
    path: Path
    name: str
    last: bool = False
    engine: bool = False

    def get_closest_marker(self, name: str) -> bool | None:
        return {"last": self.last, "engine": self.engine}.get(name) or None


def ordered(*items: Item) -> list[str]:
    found = list(items)
    pytest_collection_modifyitems(found)  # type: ignore[arg-type]
    return [item.name for item in found]


def test_every_file_that_comes_first_is_there() -> None:
    assert [name for name in LONGEST_FIRST if not (TESTS / name).is_file()] == []


def test_long_files_come_first_and_the_others_keep_their_order() -> None:
    second, first = (TESTS / name for name in LONGEST_FIRST[1::-1])
    items = [
        Item(Path("b.py"), "b"),
        Item(second, "second"),
        Item(Path("a.py"), "a"),
        Item(first, "first"),
    ]
    assert ordered(*items) == ["first", "second", "b", "a"]


def test_what_ends_what_a_file_shares_is_last_in_its_file() -> None:
    items = [
        Item(Path("b.py"), "ends", last=True),
        Item(Path("b.py"), "b1"),
        Item(Path("b.py"), "b2"),
        Item(Path("a.py"), "a"),
    ]
    assert ordered(*items) == ["b1", "b2", "ends", "a"]


def test_a_test_with_an_engine_where_nobody_looks_for_one_is_refused() -> None:
    assert ordered(Item(TESTS / "engine" / "a.py", "a", engine=True)) == ["a"]
    with pytest.raises(pytest.UsageError, match=r"unit/a\.py"):
        ordered(Item(TESTS / "unit" / "a.py", "a", engine=True))


def test_make_names_the_folders_of_tests_with_an_engine() -> None:
    (line,) = (
        line
        for line in (TESTS.parent / "Makefile").read_text().splitlines()
        if line.startswith("LIVE := ")
    )
    assert set(line.split()[2:]) == {f"tests/{name}" for name in LIVE}
