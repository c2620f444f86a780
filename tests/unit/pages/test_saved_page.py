import base64
import hashlib
import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import plotly.graph_objects as go

from hybridwatch.pages.address import address
from hybridwatch.pages.document import Chart, Document, Link, Paragraph, Section
from hybridwatch.pages.html import static_page

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


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
