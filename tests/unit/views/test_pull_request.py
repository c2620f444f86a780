"""The one comment on a pull request, in every situation."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.metadata import version

import pytest
from markdown_it import MarkdownIt

from hybridwatch.analysis.findings import Absent, Findings
from hybridwatch.views.escape import in_html
from hybridwatch.views.pull_request import LIMIT, SUMMARY_LIMIT, News, news_in, render, title_of
from tests.findings import CASES, named
from tests.situations import HOSTILE, SITUATIONS

OURS = {
    "code", "details", "h2", "li", "ol", "p", "pre", "strong", "sub", "summary",
    "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip


class Elements(HTMLParser):
    """Every element that a browser would make, with its attributes."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.open: list[str] = []
        self.text = ""
        self.crossed = False
        self.feed(MarkdownIt("commonmark", {"html": True}).enable(["table"]).render(markdown))

    def handle_starttag(self, tag, attrs) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        self.crossed |= not self.open or self.open.pop() != tag

    def handle_data(self, data) -> None:
        self.text += data


def outside_fences(text: str) -> str:
    return re.sub(r"^(`{3,})\n.*\n\1$", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("case", CASES)
def test_the_comment_reads_as_reviewed(case, golden) -> None:
    text = CASES[case]().page().text
    golden.check(f"pull_request/{case}.md", text.replace(version("hybridwatch"), "VERSION"))


@pytest.mark.parametrize("case", CASES)
def test_nothing_but_our_own_elements_comes_out(case) -> None:
    page = Elements(CASES[case]().page().text)
    assert {tag for tag, _ in page.found} <= OURS
    assert {name for tag, names in page.found for name in names} <= {"style"}, "of table cells"
    assert not page.crossed
    assert page.open == []


def test_an_unescaped_name_would_be_seen() -> None:
    """Planted: what the test above looks for, where nothing is escaped."""
    page = Elements(f"<details><summary>{HOSTILE}</summary>\n\n{HOSTILE}\n\n</details>")
    assert "script" in {tag for tag, _ in page.found}
    assert page.crossed


def test_hostile_text_is_shown_wakes_nobody_and_links_nowhere() -> None:
    text = CASES["hostile"]().page().text
    prose = outside_fences(text)
    assert not re.search(r"[@#]\w|://\w|\bwww\.\w", prose)
    assert "\u202e" not in text
    assert "\x1b" not in text
    shown = Elements(text).text
    assert "<script>alert(1)</script> | a | `b` **c** [d](http" in shown
    assert "\\" not in shown


def test_a_stranger_cannot_write_our_marker() -> None:
    """The marker is a comment at the very end; a record's text is never that."""
    mark = "<!-- hybridwatch: good -->"
    text = render(Findings((), (Absent(mark, mark),))).text
    assert news_in(text) is News.BAD
    assert outside_fences(text).count("<!--") == 1
    assert news_in(f"{mark}\nlooks good to me") is None
    assert news_in("<!-- hybridwatch: evil -->") is None


@pytest.mark.parametrize(
    ("case", "news"),
    [
        ("regression", News.BAD),
        ("unsure", News.BAD),
        ("missing", News.BAD),
        ("improvement", News.GOOD),
        ("recovered", News.RECOVERED),
        ("gone", News.GONE),
    ],
)
def test_the_marker_says_what_was_told(case, news) -> None:
    assert news_in(CASES[case]().page().text) is news


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (News.BAD, News.RECOVERED),
        (News.RECOVERED, News.RECOVERED),
        (News.GOOD, News.GONE),
        (News.GONE, News.GONE),
    ],
)
def test_news_that_is_over_is_called_by_its_name(before, after) -> None:
    quiet = Findings((SITUATIONS["equivalent"](),))
    text = render(quiet, before).text
    assert news_in(text) is after
    assert text.startswith("**Recovered") is (after is News.RECOVERED)
    loud = render(Findings((SITUATIONS["regression"](),)), before).text
    assert news_in(loud) is News.BAD
    assert loud.startswith("**Bad news")


def test_the_verdict_comes_first_then_what_is_lost_then_the_table_then_the_rest() -> None:
    lost = Absent("smoke/dummy-run", "missing: there is no record of it")
    reports = named("regression", "smoke/x"), named("failed", "smoke/y")
    text = render(Findings(reports, (lost,))).text
    first = (
        "**Bad news: 1 scenario not judged",
        "- smoke/dummy-run: not judged",
        "- smoke/y: accuracy.recall: newly failed",
        "|  | scenario | metric |",
        "<details>",
    )
    last = (
        "**Next:**",
        "hybridwatch run smoke/x",
        "**Measured:**",
        "<sub>",
        "<!-- hybridwatch: bad",
    )
    text, rest = text[: text.rindex("</details>")], text[text.rindex("</details>") :]
    for part, words in ((text, first), (rest, last)):
        places = [part.index(word) for word in words]
        assert places == sorted(places)


def test_a_command_from_a_record_is_one_word_for_a_shell() -> None:
    text = render(Findings((), (Absent("x; rm -rf ~", "missing"),))).text
    assert "\nhybridwatch run 'x; rm -rf ~'\n" in text


def many(number: int):
    return Findings(tuple(named("regression", f"smoke/number-{at}") for at in range(number)))


@pytest.mark.parametrize("number", [1, 12, 60])
def test_no_comment_is_longer_than_the_host_takes(number) -> None:
    page = render(many(number))
    assert len(page.text.encode()) <= LIMIT
    assert bool(page.left_out) is (number > 12)
    assert news_in(page.text) is News.BAD
    assert page.text.startswith("**Bad news: ")
    assert len(page.text.encode()) > LIMIT / 2 or not page.left_out, "what fits is there"


def test_what_does_not_fit_is_in_the_summary() -> None:
    short, whole = render(many(60)), render(many(60), limit=SUMMARY_LIMIT)
    assert whole.left_out == ()
    assert len(whole.text) > LIMIT
    assert "job summary" in short.text
    for number in range(60):
        name = f"<summary>Report on <code>smoke/number-{number}</code>"
        assert name in whole.text
        assert (name in short.text) is (
            f"the report on <code>smoke/number-{number}</code>" not in short.left_out
        )


def test_hostile_floods_fit_too() -> None:
    flood = "$@" * 5_000
    report = SITUATIONS["regression"]()
    worse = tuple(
        replace(
            report, scenario=replace(report.scenario, id=f"{flood}{at}"), differences=(flood,) * 99
        )
        for at in range(50)
    )
    page = render(Findings(worse, tuple(Absent(flood, flood) for _ in range(50))))
    assert len(page.text.encode()) <= LIMIT
    assert page.text.startswith("**Bad news: 50 scenarios not judged")


def test_a_title_is_one_line() -> None:
    assert "\n" not in title_of(CASES["hostile"]().findings)


def test_in_html_no_markdown_is_escaped() -> None:
    assert in_html("a_b <i> @x") == "a_b &lt;i&gt; @\u200bx"
