import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridwatch.pages.address import HOME, Address, address, read_query
from hybridwatch.pages.query import ViewQuery
from tests.dashboard.parity import read_href

OPTIONS = {"a": "first", "b": "second"}


def asked(query: str) -> ViewQuery:
    return ViewQuery(read_query("runs", query))


def test_an_address_is_written_relative_and_quoted() -> None:
    to = address("run", run="x&y=1", metric=["ttft p99", "<b>"], left_out=None, page=2)
    assert to.href() == "run?run=x%26y%3D1&metric=ttft+p99&metric=%3Cb%3E&page=2"
    assert address("runs").href() == "runs"
    assert address("overview").href() == "./"
    assert address("overview", group="smoke").href() == "./?group=smoke"


@given(st.lists(st.tuples(st.text(min_size=1), st.text())))
def test_an_address_reads_back_as_it_was_written(pairs: list[tuple[str, str]]) -> None:
    # Surrogates cannot be written as UTF-8 at all.
    told = [(n, v) for n, v in pairs if (n + v).isprintable()]
    assert read_query("runs", Address("runs", tuple(told)).query()).parameters == tuple(told)
    for screen in ("runs", HOME):
        assert read_href(Address(screen, tuple(told)).href()) == Address(screen, tuple(told))


def test_one_of_several_follows_the_address() -> None:
    reader = asked("?x=b")
    assert reader.one("Letter", "x", OPTIONS, "a").value == "b"
    assert reader.resolved() == address("runs", x="b")
    assert reader.complaints() == ()


def test_a_default_is_left_out_of_the_address_and_a_first_option_pinned() -> None:
    reader = asked("")
    assert reader.one("Letter", "x", OPTIONS, "a").value == "a"
    assert reader.one("Letter", "y", OPTIONS).value == "a"
    assert reader.resolved() == address("runs", y="a")


def test_what_is_gone_is_reported_and_replaced() -> None:
    reader = asked("x=zzz")
    assert reader.one("Run", "x", OPTIONS, "a").value == "a"
    assert reader.complaints() == ("The link names run 'zzz', which is not in this store.",)
    assert reader.resolved() == address("runs")


def test_without_options_nothing_is_chosen() -> None:
    reader = asked("")
    assert reader.one("Run", "x", {}).value == ""
    assert reader.resolved() == address("runs")


def test_many_keep_the_valid_once_and_tell_of_the_others() -> None:
    reader = asked("x=b&x=zzz&x=b&x=a")
    assert reader.many("Letter", "x", OPTIONS).chosen == ("b", "a")
    assert reader.complaints() == ("The link names letter 'zzz', which is not in this store.",)
    assert reader.resolved() == address("runs", x=["b", "a"])


def test_a_parameter_that_nobody_asked_for_is_reported_once() -> None:
    reader = asked("foo=1&foo=2&x=a")
    reader.one("Letter", "x", OPTIONS, "b")
    assert reader.complaints() == ("The link says 'foo', which this view does not know.",)


def test_a_single_parameter_said_twice_is_reported() -> None:
    reader = asked("x=a&x=b")
    assert reader.one("Letter", "x", OPTIONS).value == "b"
    assert reader.complaints() == ("The link says x more than once; the last holds.",)


@pytest.mark.parametrize("text", ["0", "6", "x", "-1", "1.5", "\u0661", "9" * 5000, ""])
def test_a_number_out_of_range_is_reported(text: str) -> None:
    reader = ViewQuery(address("runs", page=text))
    assert reader.page(5) == 1
    [complaint] = reader.complaints()
    assert complaint.endswith("expected a number from 1 to 5.")
    assert len(complaint) < 200


def test_pages_and_texts_are_read() -> None:
    reader = asked("page=3&q=+two+words+")
    assert reader.page(5) == 3
    assert reader.text("q") == "two words"
    assert reader.complaints() == ()
    assert reader.resolved() == address("runs", page=3, q="two words")


def test_resolved_opens_the_same_view_without_complaint() -> None:
    first = asked("x=zzz&m=a&m=nope&foo=1&page=99")

    def read(reader: ViewQuery) -> tuple[object, ...]:
        return (reader.one("L", "x", OPTIONS), reader.many("M", "m", OPTIONS), reader.page(5))

    seen = read(first)
    again = ViewQuery(first.resolved())
    assert read(again) == seen
    assert again.complaints() == ()
