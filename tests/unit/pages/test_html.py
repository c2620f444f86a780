import re
from datetime import UTC, datetime
from html import unescape
from typing import get_args
from urllib.parse import unquote
from zoneinfo import ZoneInfo

import plotly.graph_objects as go
import pytest
from jinja2 import UndefinedError

from hybridwatch.analysis.verdict import Verdict
from hybridwatch.pages import html as html_module
from hybridwatch.pages.address import Address, address
from hybridwatch.pages.document import (
    Block,
    Cell,
    Chart,
    ChoiceField,
    Code,
    Column,
    Columns,
    Command,
    Facts,
    Filters,
    Folded,
    Heading,
    Inline,
    Link,
    Notice,
    Paragraph,
    Section,
    Short,
    Table,
    When,
)
from hybridwatch.pages.html import ENVIRONMENT, HtmlContext, blocks_html, csv_of_table, line_html
from hybridwatch.reports.sentence import MARKS

HOSTILE = '"><script>boom()</script><img src=x onerror="boom()"> {} {0} %s &amp;'
PEN = HtmlContext(href=Address.href)
FIGURE = '<script type="application/json">'
"""What stands before a figure's numbers; a browser does not run it."""


def html(*blocks: Block) -> str:
    return str(blocks_html(blocks, PEN))


def everything(text: str) -> tuple[Block, ...]:
    """Each kind of block with one text wherever a text can stand."""
    line = (text, Link(text, text), Link(text, address("run", x=text)))
    cell = Cell(line, text, text, sparkline=(1.0,))
    when = When(datetime(2026, 1, 1, tzinfo=UTC), text)
    choice = ChoiceField(text, text, {text: text}, (text,))
    return (
        Heading(text),
        Paragraph(line),
        Notice(text, (line,)),
        Facts(((text, line),)),
        Table(text, (Column(text, title=text), Column(text)), ((cell, when),)),
        Chart(text, go.Figure(layout={"title": {"text": text}}), text, {text: [text]}),
        Code(text, text),
        Command(text, text),
        Filters((choice,)),
        Columns(((Paragraph(text),),)),
        Section(text, (Folded(text, (Paragraph(text),)),)),
    )


@pytest.mark.parametrize("place", range(len(everything(""))))
def test_no_text_becomes_markup_in_any_block(place: int) -> None:
    said = html(everything(HOSTILE)[place]).replace(FIGURE, "")
    assert "<script" not in said
    assert "<img src=x" not in said
    assert 'href="&#34;' not in said
    assert "&lt;script&gt;boom()&lt;/script&gt;" in said


def test_the_check_for_markup_sees_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_module, "ENVIRONMENT", ENVIRONMENT.overlay(autoescape=False))
    assert "<script" in html(Heading(HOSTILE))


def test_every_kind_of_block_and_of_piece_has_a_template() -> None:
    written = {type(block) for block in everything("")} | {Section, Folded}
    assert written == set(get_args(Block))
    module = ENVIRONMENT.get_template("blocks.html").make_module({"context": PEN})
    macros = vars(module)
    assert set(macros["by_kind"]) == {kind.__name__ for kind in get_args(Block)}
    assert set(macros["inline"]) == {kind.__name__ for kind in get_args(Inline)} - {"str"}


@pytest.mark.parametrize("place", range(len(everything(""))))
def test_no_text_steers_a_display_in_any_block(place: int) -> None:
    written = html(everything("\x1b[31m\u202ered")[place])
    assert not set(written) & {"\x1b", "\u202e"}
    assert r"\x1b[31m\u202ered" in written


def test_a_name_that_a_template_does_not_have_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        ENVIRONMENT.from_string("{{ gone }}").render()


@pytest.mark.parametrize(
    "to",
    ["javascript:boom()", "http://example.org", "data:text/html,x", "//x", "https://", "h[ttp"],
)
def test_only_https_leads_out(to: str) -> None:
    assert "<a" not in line_html(Link("click", to), PEN)
    assert 'href="https://example.org/1"' in line_html(Link("c", "https://example.org/1"), PEN)


def test_verdicts_are_told_by_word_symbol_and_colour() -> None:
    looks = set()
    for verdict in Verdict:
        said = str(line_html(verdict, PEN))
        assert verdict.value in said
        assert MARKS[verdict] in said
        looks.add(said.split('class="hw-pill ')[1].split('"')[0])
    assert len(looks) == len(Verdict)


def test_hover_says_utc_and_the_readers_time() -> None:
    pen = HtmlContext(PEN.href, local=ZoneInfo("Europe/Berlin"))
    moment = datetime(2026, 11, 21, 9, 15, tzinfo=UTC)
    aged = str(line_html(When(moment, "3 h ago"), pen))
    assert 'title="2026-11-21 09:15 UTC\n2026-11-21 10:15 CET"' in aged
    assert ">3 h ago</time>" in aged
    assert 'datetime="2026-11-21T09:15:00+00:00"' in aged


def test_hover_says_the_whole_of_what_is_short_and_both_are_harmless() -> None:
    written = line_html(Short("<b>", '"><b>/results'), HtmlContext(href=Address.href))
    assert written == '<span title="&#34;&gt;&lt;b&gt;/results">&lt;b&gt;</span>'


def test_a_csv_link_holds_the_file_byte_for_byte() -> None:
    texts = [HOSTILE, "50 % of #1", "a\tb\r\nc", "%0A", "\u00b5s, \u201cquoted\u201d"]
    table = Table("t", (Column("text"),), tuple((text,) for text in texts))
    (href,) = re.findall(r'href="(data:[^"]*)"', html(table))
    kind, _, content = unescape(href).partition(",")
    assert kind == "data:text/csv;charset=utf-8"
    assert not set(content) & set("#\t\r\n")  # which end an address, or are dropped
    assert unquote(content) == csv_of_table(table)


def test_headings_nest() -> None:
    said = html(Section("a", (Section("b", ()),)))
    assert "<h2" in said
    assert "<h3" in said


def test_tables_say_what_they_are_to_those_who_hear_them() -> None:
    said = html(Table("Latest", (Column("n", number=True),), (("1",), ("2",)), marked=1))
    assert '<caption class="hw-unseen">Latest</caption>' in said
    assert 'scope="col"' in said
    assert said.count('aria-current="true"') == 1
    assert 'data-label="n"' in said


def test_a_sparkline_has_a_text_and_bears_one_or_equal_values() -> None:
    for values, words in (
        ((2.0,), "one run so far"),
        ((2.0, 2.0), "2 runs, level from 2 to 2"),
        ((2.0, 1.0, 3.0), "3 runs, up from 2 to 3"),
    ):
        assert f'alt="{words}"' in html(Table("t", (Column("a"),), ((Cell(sparkline=values),),)))
