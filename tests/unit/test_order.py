"""In which order tests run, and on which worker: what shares an engine stays together."""

from dataclasses import dataclass

from tests.order import LONGEST_FIRST, ROOT, GroupScheduling, arrange, group_of


@dataclass(frozen=True)
class Item:
    nodeid: str
    last: bool = False

    def get_closest_marker(self, name: str) -> bool | None:
        return (self.last and name == "last") or None


def arranged(*items: Item) -> list[str]:
    found = list(items)
    arrange(found)  # type: ignore[arg-type]
    return [item.nodeid for item in found]


def test_every_group_that_comes_first_is_there() -> None:
    assert [group for group in LONGEST_FIRST if not (ROOT / group).exists()] == []
    assert [group for group in LONGEST_FIRST if group_of(f"{group}/test_a.py") == group] == [
        group for group in LONGEST_FIRST if not group.endswith(".py")
    ]


def test_long_groups_come_first_and_the_others_keep_their_order() -> None:
    first, second = (f"{group}::test" for group in LONGEST_FIRST[:2])
    items = [Item("b.py::test"), Item(second), Item("a.py::test"), Item(first)]
    assert arranged(*items) == [first, second, "b.py::test", "a.py::test"]


def test_a_group_stays_together_wherever_its_tests_are() -> None:
    shared = "tests/engine/padded_rows"
    one, other = f"{shared}/test_control.py::a", f"{shared}/test_broken_engine.py::b"
    items = [Item(one), Item("z.py::z"), Item(other)]
    assert arranged(*items) == [one, other, "z.py::z"]


def test_what_ends_what_a_group_shares_is_last_in_its_group() -> None:
    shared = "tests/engine/padded_rows"
    ends = Item(f"{shared}/test_broken_engine.py::ends", last=True)
    items = [Item("b.py::b"), ends, Item(f"{shared}/test_control.py::c"), Item("a.py::a")]
    assert [name.rpartition("::")[2] for name in arranged(*items)] == ["c", "ends", "b", "a"]


def test_a_worker_takes_a_folder_that_shares_fixtures_whole_and_else_a_file() -> None:
    split = GroupScheduling._split_scope
    shared = "tests/engine/padded_rows"
    assert split(None, f"{shared}/test_control.py::test[a::b]") == shared  # type: ignore[arg-type]
    assert split(None, "tests/unit/test_a.py::B::c") == "tests/unit/test_a.py"  # type: ignore[arg-type]
