"""How Sphinx makes a site of README, these pages and the folders' READMEs: ``make docs``.

A link that leads nowhere is an error there. Pages are Markdown that GitHub shows as it is, so what
only the site needs is added here.
"""

import re
import shutil
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]

project = "hybridwatch"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["README.md", "CHANGELOG.md", "docs/*.md", "lab/docs/*.md", "*/README.md"]
include_patterns += ["models/*/README.md"]
exclude_patterns = [".*"]  # caches and environments have pages, too
html_theme = "furo"
html_title = "hybridwatch"
myst_heading_anchors = 4  # pages link to headings by the names that GitHub gives them
suppress_warnings = ["myst.header"]  # the changelog's releases all have the same headings
highlight_language = "none"


def add_contents(app: Sphinx, name: str, source: list[str]) -> None:
    """Put the tree of all pages, which GitHub has no word for, at the end of the first one."""
    if name == root_doc:
        pages = "\n".join(sorted(app.env.found_docs - {root_doc}))
        source[0] += f"\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"


def add_scripts(app: Sphinx, name: str, source: list[str]) -> None:
    """Put the script of each report under the link to it, which GitHub follows."""

    def add(found: re.Match[str]) -> str:
        script = Path(app.srcdir, "lab/docs", found[1]).read_text(encoding="utf-8")
        return f"{found[0]}\n\n```python\n{script}```\n\n"

    if name == "lab/docs/reports":
        source[0] = re.sub(r"^Script: \[(.+?)\](?:.+\n)+", add, source[0], flags=re.MULTILINE)


def add_index(app: Sphinx, error: Exception | None) -> None:
    """Let a browser that asks for the site's folder find the first page."""
    if error is None:
        shutil.copyfile(Path(app.outdir) / f"{root_doc}.html", Path(app.outdir) / "index.html")


def setup(app: Sphinx) -> None:
    """Join Sphinx; it calls this."""
    app.add_lexer(
        "mermaid", TextLexer
    )  # drawn by GitHub, shown as text here: no script from elsewhere
    app.connect("source-read", add_contents)
    app.connect("source-read", add_scripts)
    app.connect("build-finished", add_index)
