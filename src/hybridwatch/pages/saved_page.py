"""A view as one HTML file that needs nothing else: no server, no network.

It is the document that the live page shows, written by the same templates. Its policy lets only
our own scripts run, named by their digests: a text that became markup by mistake could do nothing.
"""

import base64
import hashlib
import shlex
from collections.abc import Iterator
from datetime import datetime
from importlib.resources import files
from typing import Final

from markupsafe import Markup

from hybridwatch.pages.document import Block, Chart, Columns, Document, Folded, Section, When
from hybridwatch.pages.html import ENVIRONMENT, HtmlContext
from hybridwatch.pages.style import STYLE
from hybridwatch.reports.figures.script import plotly_script

_GROUND: Final = """
:root { color-scheme: light dark; --ground: #ffffff; --type: #1b2430; }
@media (prefers-color-scheme: dark) { :root { --ground: #11161d; --type: #e6eaf0; } }
body { margin: 0; background: var(--ground); color: var(--type); font-size: 15px; line-height: 1.5;
  font-family: "Source Sans 3", "Source Sans Pro", system-ui, sans-serif; }
main, footer { max-width: 80rem; margin: 0 auto; padding: 1.5rem clamp(0.8rem, 3vw, 2rem) 0; }
footer { padding-bottom: 2rem; }
@media print { .hw-file { display: none; } }
"""

_SCRIPT: Final = files("hybridwatch.pages").joinpath("saved_page.js").read_text(encoding="utf-8")


def static_page(document: Document, now: datetime | None = None, base: str | None = None) -> str:
    """Write a view as a whole HTML page.

    ``now`` is when it is written; aware. It is ``None`` for what is no file, and needs no command
    that writes it again. ``base`` is where the dashboard is to be found, with its last slash; links
    to other views lead there, and are no links without.
    """
    drawn = any(isinstance(block, Chart) for block in _all(document.blocks))
    scripts = ([plotly_script()] if drawn else []) + [_SCRIPT]
    return ENVIRONMENT.get_template("page.html").render(
        {
            "context": HtmlContext(
                lambda to: None if base is None else base + to.href().removeprefix("./")
            ),
            "document": document,
            "foot": _foot(document, now) if now else (),
            "policy": _policy(scripts),
            "scripts": [Markup(script) for script in scripts],  # noqa: S704 (plotly's and our own)
            "style": Markup(_GROUND + STYLE),  # noqa: S704 (our own)
        }
    )


def _foot(document: Document, now: datetime) -> tuple[str | When, ...]:
    words = ["hybridwatch", "page", document.address.screen]
    if query := document.address.query():
        words += ["--query", query]
    return ("Written ", When(now), f" by {shlex.join(words)}")


def _policy(scripts: list[str]) -> str:
    allowed = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _all(blocks: tuple[Block, ...]) -> Iterator[Block]:
    for block in blocks:
        yield block
        if isinstance(block, Section | Folded):
            yield from _all(block.blocks)
        elif isinstance(block, Columns):
            for part in block.parts:
                yield from _all(part)
