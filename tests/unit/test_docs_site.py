"""The site of the pages: a link that leads nowhere stops it, and it asks nothing from elsewhere."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPHINX = ROOT / ".venv-docs" / "bin" / "sphinx-build"

pytestmark = pytest.mark.skipif(not SPHINX.exists(), reason="`make docs` was not run")


def build(pages: Path, out: Path) -> str:
    """Build a site as ``make docs`` does; gives what was said, empty when all is well."""
    words = [str(SPHINX), "--fail-on-warning", "--keep-going", "--quiet", "--nitpicky"]
    words += ["--conf-dir", str(ROOT / "docs"), str(pages), str(out)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert bool(done.returncode) == bool(done.stderr), done
    return done.stderr


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "one.md").write_text("# One\n\nMore under [two](../README.md#two).\n")
    (tmp_path / "README.md").write_text(
        "# All\n\nRead [one](docs/one.md#one).\n\n## Two\n\nMore.\n"
    )
    return tmp_path


def test_a_site_has_every_page_and_asks_nothing_from_elsewhere(pages: Path) -> None:
    out = pages / "site"
    assert not build(pages, out)
    first = (out / "index.html").read_text(encoding="utf-8")
    assert 'href="docs/one.html"' in first
    assert first == (out / "README.html").read_text(encoding="utf-8")
    for page in out.rglob("*.html"):
        fetched = re.findall(r'(?:<script[^>]*src|<link[^>]*href)="(\w+:)?//', page.read_text())
        assert not fetched, page


def test_each_link_that_leads_nowhere_stops_it(pages: Path) -> None:
    with (pages / "README.md").open("a", encoding="utf-8") as page:
        page.write("\n[A](docs/none.md) [B](docs/one.md#nowhere) [C](none.py)\n")
    said = build(pages, pages / "site")
    for target in ("docs/none", "nowhere", "none.py"):
        assert any(target in line for line in said.splitlines()), said
