"""What documents are made of, and blocks as HTML, on a page, in a saved file and as CSV."""

import base64
import hashlib
import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from html import unescape
from html.parser import HTMLParser
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
    Document,
    Facts,
    Filters,
    Folded,
    Inline,
    Line,
    Link,
    NightCell,
    Nights,
    Notice,
    Paragraph,
    Section,
    Short,
    Table,
    When,
    plain,
)
from hybridwatch.pages.html import (
    ENVIRONMENT,
    STYLE,
    HtmlContext,
    blocks_html,
    csv_of_chart,
    csv_of_table,
    file_name,
    static_page,
)
from hybridwatch.reports.sentence import MARKS

HOSTILE = '"><script>boom()</script><img src=x onerror="boom()"> {} {0} %s &amp;'
PEN = HtmlContext(href=Address.href)
FIGURE = '<script type="application/json">'
"""What stands before a figure's numbers; a browser does not run it."""
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
MOMENT = datetime(2026, 11, 21, 10, 15, tzinfo=timezone(timedelta(hours=1)))


def html(*blocks: Block) -> str:
    return str(blocks_html(blocks, PEN))


def line_html(line: Line, context: HtmlContext = PEN) -> str:
    return str(blocks_html([Paragraph(line)], context))


def everything(text: str) -> tuple[Block, ...]:
    """Each kind of block with one text wherever a text can stand."""
    line = (text, Link(text, text), Link(text, address("run", x=text)))
    cell = Cell(line, text, text, sparkline=(1.0,))
    when = When(datetime(2026, 1, 1, tzinfo=UTC), text)
    choice = ChoiceField(text, text, {text: text}, (text,))
    return (
        Paragraph(line),
        Notice(text, (line,)),
        Facts(((text, line),)),
        Table(text, (Column(text, title=text), Column(text)), ((cell, when),)),
        Chart(text, go.Figure(layout={"title": {"text": text}}), text, {text: [text]}),
        Nights(text, (date(2026, 1, 1),), ((line, (NightCell(None, text),)),)),
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
    assert "<script" in html(Section(HOSTILE, ()))


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
    assert "<a" not in line_html(Link("click", to))
    assert 'href="https://example.org/1"' in line_html(Link("c", "https://example.org/1"))


def test_verdicts_are_reported_by_word_symbol_and_colour() -> None:
    looks = set()
    for verdict in Verdict:
        said = line_html(verdict)
        assert verdict.value in said
        assert MARKS[verdict] in said
        looks.add(said.split('class="hw-pill ')[1].split('"')[0])
    assert len(looks) == len(Verdict)
    rules = [STYLE.partition(f".{look} {{")[2].partition("}")[0] for look in looks]
    assert all(rules), "a pill without a look is bare text"
    assert len(set(rules)) == len(Verdict)


def test_hover_says_utc_and_the_readers_time() -> None:
    pen = HtmlContext(PEN.href, local=ZoneInfo("Europe/Berlin"))
    moment = datetime(2026, 11, 21, 9, 15, tzinfo=UTC)
    aged = line_html(When(moment, "3 h ago"), pen)
    assert 'title="2026-11-21 09:15 UTC\n2026-11-21 10:15 CET"' in aged
    assert ">3 h ago</time>" in aged
    assert 'datetime="2026-11-21T09:15:00+00:00"' in aged


def test_hover_says_the_whole_of_what_is_short_and_both_are_harmless() -> None:
    written = line_html(Short("<b>", '"><b>/results'))
    assert '<span class="hw-whole" title="&#34;&gt;&lt;b&gt;/results">&lt;b&gt;</span>' in written


def shown_on_a_phone(*verdicts: Verdict) -> list[str]:
    """Write a table of eight columns: what a phone shows at first, and what leads to the rest."""
    columns = (Column("verdict"), *map(Column, "bcdefgh"))
    written = html(Table("t", columns, tuple((one, *"bcdefgh") for one in verdicts)))
    rows = re.findall(r'<tr role="row">\n<td.*?\u00a0([a-z ]+)</span>', written, re.DOTALL)
    return rows + re.findall("<summary>(.*)</summary>", written)


def test_a_phone_shows_four_rows_of_eight_cells_and_leads_to_the_rest() -> None:
    assert shown_on_a_phone(*[Verdict.EQUIVALENT] * 4) == ["equivalent"] * 4
    assert shown_on_a_phone(*[Verdict.EQUIVALENT] * 5) == ["equivalent"] * 4 + ["All 5 rows"]


def test_a_phone_shows_bad_news_before_others_in_the_order_of_all() -> None:
    good, bad, failed = Verdict.EQUIVALENT, Verdict.REGRESSION, Verdict.FAILED
    shown = shown_on_a_phone(good, good, good, bad, good, good, failed)
    assert shown == ["equivalent", "equivalent", "regression", "failed", "All 7 rows"]
    assert shown_on_a_phone(*[bad] * 9) == ["regression"] * 4 + ["All 9 rows"]


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
    said = html(Table("Latest", (Column("n", number=True),), (("1",), ("2",))))
    assert '<caption class="hw-unseen">Latest</caption>' in said
    assert 'scope="col"' in said
    assert 'data-label="n"' in said


def test_a_sparkline_has_a_text_and_bears_one_or_equal_values() -> None:
    for values, words in (
        ((2.0,), "one run so far"),
        ((2.0, 2.0), "2 runs, level from 2 to 2"),
        ((2.0, 1.0, 3.0), "3 runs, up from 2 to 3"),
    ):
        assert f'alt="{words}"' in html(Table("t", (Column("a"),), ((Cell(sparkline=values),),)))


class Parsed(HTMLParser):
    """Scripts, and every attribute that makes a browser fetch or go somewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.fetched: list[str] = []
        self.policy = ""
        self._type: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.fetched += [named[name] or "" for name in ("src", "href") if name in named]
        self._type = (named.get("type") or "") if tag == "script" else None
        if named.get("http-equiv") == "Content-Security-Policy":
            self.policy = named["content"] or ""

    def handle_data(self, data: str) -> None:
        if self._type == "":
            self.scripts.append(data)
            self._type = None


def page(text: str, base: str | None = None) -> str:
    figure = go.Figure(go.Scatter(x=[1], y=[2], name=text))
    chart = Chart(text, figure, text, {text: [text]})
    blocks = (Section(text, (chart,)), Paragraph(Link("there", address("run", run=text))))
    return static_page(Document(text, blocks, address=address("runs", x=text)), NOW, base)


def test_policy_names_exactly_the_scripts_of_the_page() -> None:
    parsed = Parsed(page("</script><script>boom()</script>"))
    assert len(parsed.scripts) == 2
    digests = {
        "sha256-" + base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()
        for s in parsed.scripts
    }
    assert set(re.findall(r"'(sha256-[^']+)'", parsed.policy)) == digests
    assert parsed.policy.startswith("default-src 'none'")
    assert "unsafe-inline'" not in parsed.policy.partition("script-src")[2].partition(";")[0]


def test_nothing_is_fetched() -> None:
    assert all(each.startswith("data:") for each in Parsed(page("x")).fetched)


def test_a_page_without_charts_has_no_plotly() -> None:
    assert len(static_page(Document("t", ()), NOW)) < 20_000
    assert page("x").count("* plotly.js v") == 1


def test_links_lead_to_the_dashboard_where_it_is_known() -> None:
    assert 'href="http://127.0.0.1:8501/run?run=x"' in page("x", "http://127.0.0.1:8501/")
    assert '<span class="hw-link">there</span>' in page("x")


def test_the_page_says_how_it_was_made() -> None:
    assert "Written" in page("x")
    assert "hybridwatch page runs --query x=a%27b" in page("a'b")


def test_a_moment_is_written_in_utc_or_as_it_is_reported() -> None:
    assert When(MOMENT).text == "2026-11-21 09:15 UTC"
    assert When(MOMENT, "3 h ago").text == "3 h ago"
    assert When(MOMENT, "3 h ago").utc == "2026-11-21 09:15 UTC"


def test_a_line_of_pieces_reads_as_one_text() -> None:
    line = (Verdict.FAILED, " since ", When(MOMENT, "today"), " in ", Link("x", address("runs")))
    assert plain(line) == "failed since today in x"
    assert plain("") == ""


def test_a_row_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 2 cells, found 1"):
        Table("t", (Column("a"), Column("b")), (("only one",),))


def test_csv_of_a_table_has_raw_numbers_times_in_iso_and_what_stands_under() -> None:
    columns = (Column("verdict"), Column("value"), Column("when"), Column("trend"))
    rows = (
        (
            Verdict.REGRESSION,
            Cell("41.3 ms", raw=0.0413),
            Cell(When(MOMENT, "3 h ago"), "run 1f"),
            Cell("", sparkline=(1.0, 2.5)),
        ),
    )
    assert csv_of_table(Table("t", columns, rows)) == (
        "verdict,value,when,trend\nregression,0.0413,2026-11-21T09:15:00+00:00 run 1f,1 2.5\n"
    )


@pytest.mark.parametrize("text", ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-x()", "\t=1"])
def test_no_spreadsheet_computes_a_text_of_a_record(text: str) -> None:
    said = csv_of_table(Table("t", (Column("a"),), ((text,),)))
    assert said.split("\n", 1)[1].lstrip('"').startswith("'")


@pytest.mark.parametrize("text", ["-4.0 points", "+20.1 %", "-", "plain"])
def test_changes_stay_as_they_are_in_a_csv(text: str) -> None:
    assert csv_of_table(Table("t", (Column("a"),), ((text,),))) == f"a\n{text}\n"


def test_csv_of_a_chart_is_its_columns_and_refuses_uneven_ones() -> None:
    chart = Chart("c", None, "d", {"at": [MOMENT, MOMENT], "value": [1.5, 2]})
    at = "2026-11-21T09:15:00+00:00"
    assert csv_of_chart(chart) == f"at,value\n{at},1.5\n{at},2\n"
    with pytest.raises(ValueError, match="shorter"):
        csv_of_chart(Chart("c", None, "d", {"at": [MOMENT, MOMENT], "value": [1.5]}))


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("ttft p99", "hybridwatch-ttft-p99.csv"),
        ("../../etc/passwd", "hybridwatch-etc-passwd.csv"),
        ("<script>", "hybridwatch-script.csv"),
        ("é", "hybridwatch-view.csv"),
    ],
)
def test_a_file_has_a_harmless_name(title: str, name: str) -> None:
    assert file_name(title, ".csv") == name


def test_a_choice_tells_in_words_and_many_of_none_is_all() -> None:
    options = {"a": "first", "b": "second"}
    assert ChoiceField("L", "p", options, ("a", "b"), many=True).chosen_text == "first, second"
    assert ChoiceField("L", "p", options, (), many=True).chosen_text == "all"
    assert ChoiceField("L", "p", {}, ()).value == ""


def test_complaints_stand_first_and_loud() -> None:
    [warning] = Document("t", (), complaints=("no such run",)).warnings
    assert not warning.quiet
    assert warning.lines == ("no such run",)
    assert Document("t", ()).warnings == ()


def test_moments_are_aware_utc_in_csv_whatever_their_zone() -> None:
    utc = When(MOMENT.astimezone(UTC))
    cells = (Table("t", (Column("w"),), ((when,),)) for when in (When(MOMENT), utc))
    assert len({csv_of_table(table) for table in cells}) == 1


def test_a_live_table_can_be_scrolled_without_a_mouse() -> None:
    live = replace(PEN, files=False)
    takes_focus = '<div class="hw-scroll" tabindex="0">'
    linked = Table("t", (Column("n"),), ((Link("run", address("run")),),))
    assert takes_focus in blocks_html([Table("t", (Column("n"),), (("1",),))], live)
    assert takes_focus not in blocks_html([linked], live)
