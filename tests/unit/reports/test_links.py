"""Nothing that a record says becomes a link on GitHub, or wakes anybody."""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridwatch.analysis.change_review import Absent, ChangeReview
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Factor
from hybridwatch.reports import escape as escaping
from hybridwatch.reports.escape import as_code, as_item, escape, in_html
from hybridwatch.reports.pull_request import SUMMARY_LIMIT, render
from tests.broken_engines import dead_contender
from tests.findings import CASES
from tests.situations import SITUATIONS
from tests.unit.reports.github_html import Shown

ADDRESSES: Final = (
    "http://evil.example",
    "HTTPS://evil.example/a_b?c=d&e#f",
    "ftp://evil.example",
    "www.evil.example/x",
    "WWW.evil.example",
    "http://www.evil.example",
    "mallory@evil.example",
    "mailto:mallory@evil.example",
    "xmpp:mallory@evil.example/x",
    "<http://evil.example>",
    "[x](http://evil.example)",
    "![x](http://evil.example/y.png)",
    "[x]: http://evil.example",
    "[^1] [^1]: http://evil.example",
    "http&#58;//evil.example",
    "http\\://evil.example",
    "ht**tp://evil.example",
    "`http://evil.example",
    "http:\u200b//evil.example",
    "hthttp://evil.example",
    '<a href="//evil.example">x</a>',
)
REFERENCES: Final = (
    "@everyone", "octo/engine#1", "#123", "GH-123", "gh-7", "GHSA-jfh8-c2jp-5v3q", "CVE-2026-12345",
    "0123456789abcdef0123456789abcdef01234567", "octo/engine@0123456", "DEADBEEF", "x-1234567.",
)  # fmt: skip
HOSTILE: Final = " ".join((*ADDRESSES, *REFERENCES))
WAYS: Final[tuple[Callable[[str], str], ...]] = (
    escape,
    as_item,
    as_code,
    lambda text: f"<details><summary>{in_html(text)}</summary>\n\nx\n\n</details>",
    lambda text: f"|a|\n|-|\n|{escape(text)}|",
    lambda text: f"**{escape(text)}**",
)


@pytest.mark.parametrize("way", WAYS)
def test_no_text_becomes_a_link_or_a_reference(way) -> None:
    shown = {text: Shown(way(text)) for text in (*ADDRESSES, *REFERENCES)}
    found = {text: (one.links, one.references) for text, one in shown.items()}
    assert {text: both for text, both in found.items() if both != ([], [])} == {}


@pytest.mark.parametrize("text", ["see https://vllm.ai/x_y?a=1", "www.vllm.ai", "run dcc7e0b6"])
@pytest.mark.parametrize("way", [escape, as_code])
def test_an_address_is_read_and_copied_as_it_was_written(way, text) -> None:
    assert Shown(way(text)).text.strip() == text


PIECES: Final = st.sampled_from(
    [*ADDRESSES, *REFERENCES, "http", ":", "//", "www", ".", "a", "@", "mailto", "\\", "*", "_",
     "`", "<", ">", "&", "(", "~", "|", " ", "\u200b", "\n", "#", "1", "e.org"]
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=8).map("".join))
def test_no_mixture_becomes_a_link_or_a_reference(text) -> None:
    for way in WAYS:
        shown = Shown(way(text))
        assert (shown.links, shown.references) == ([], []), way(text)


def planted(found: Any, text: str) -> Any:
    """Append to every text of a record, however deep; names that are ours stay."""
    if isinstance(found, str):
        return f"{found} {text}" if type(found) is str else found
    if isinstance(found, tuple):
        return tuple(planted(one, text) for one in found)
    if isinstance(found, dict):
        return {key: planted(value, text) for key, value in found.items()}
    if is_dataclass(found) and not isinstance(found, type | Factor):
        told = {each.name: getattr(found, each.name) for each in fields(found) if each.init}
        return replace(found, **{name: planted(value, text) for name, value in told.items()})
    return found


def hostile() -> Iterator[ChangeReview]:
    """Everything that a comment may tell, with a link in every text."""
    reports = [make() for make in SITUATIONS.values()]
    for report in (*reports, build_report(dead_contender())):
        for text in (HOSTILE, *ADDRESSES, *REFERENCES):
            yield ChangeReview((planted(report, text),), (Absent(text, text),))


def test_no_field_of_a_record_makes_a_link_in_the_comment() -> None:
    for findings in hostile():
        shown = Shown(render(findings, limit=SUMMARY_LIMIT).text)
        assert (shown.links, shown.references) == ([], [])


@pytest.mark.parametrize("case", CASES)
def test_no_comment_has_a_link_but_to_the_commits_between_two_versions(case) -> None:
    shown = Shown(CASES[case]().page().text)
    commits = "https://github.com/vllm-project/vllm/compare/1a2b3c4d5...ffff00001"
    assert set(shown.links) == ({commits} if case == "nightly" else set())
    assert shown.references == []


def test_a_link_would_be_seen(monkeypatch) -> None:
    """Planted: addresses as they were written before, with the character behind their sign."""
    monkeypatch.setattr(
        escaping,
        "_harmless",
        lambda line: line.replace("://", "://\u200b").replace("www.", "www.\u200b"),
    )
    links = [link for text in ADDRESSES for link in Shown(escape(text)).links]
    assert len(links) > 5


@pytest.mark.parametrize("text", REFERENCES)
def test_a_reference_would_be_seen(text) -> None:
    assert Shown(text).references
