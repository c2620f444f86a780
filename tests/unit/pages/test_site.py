"""A store as a static site: its links, its feed, and which files a later call writes."""

import json
import os
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from hybridwatch.errors import ExportError
from hybridwatch.pages.site import FILES, SiteChange, render_badge, write_site
from hybridwatch.records.store import write_run
from tests.dashboard.browser.hostile import HOSTILE
from tests.dashboard.parity import words_of
from tests.site_checks import broken_links
from tests.store_builders import REGRESSED, run, scenario
from tests.unit.pages.suite_stores import NOW, UPGRADE, put, source_of, view

ATOM = "{http://www.w3.org/2005/Atom}"
OTHER = "smoke/other"
_AGE = r"\bago\b|just now"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two scenarios for six nights: one is slower from the third on, the other stays equal."""
    results = tmp_path / "results"
    for night in range(6):
        slower = 1.0 if night < 3 else 1.3
        put(results, night, slower=slower, builds=UPGRADE)
        put(results, night + 40, scenario=OTHER, builds=UPGRADE)
    return results


def write(results: Path, **options: object) -> SiteChange:
    return write_site(source_of(results), results.parent / "site", **options)  # type: ignore[arg-type]


def parsed(written: str) -> ET.Element:
    return ET.fromstring(written)  # noqa: S314 (our own)


def stamped(folder: Path) -> None:
    """Make every file old, so that what is written again is seen."""
    for path in folder.rglob("*"):
        os.utime(path, (0, 0))


def written(folder: Path) -> set[str]:
    fresh = (path for path in folder.rglob("*") if path.is_file() and path.stat().st_mtime > 0)
    return {path.relative_to(folder).as_posix() for path in fresh}


def test_every_link_leads_to_a_file_and_no_page_asks_for_another(store: Path) -> None:
    hostile = replace(REGRESSED, scenario=scenario(HOSTILE), text=HOSTILE, started_at=NOW)
    write_run(store, run(hostile))
    write(store)
    site = store.parent / "site"
    assert broken_links(site) == []
    style = (site / "assets" / "page.css").read_text()
    assert not re.search(r"url\(|@import", style)
    assert len(list(site.glob("run/*.html"))) == 13
    assert len(list(site.glob("alert/*.html"))) >= 1


def test_two_builds_have_a_page_that_says_what_the_live_one_says(store: Path) -> None:
    write(store)
    old, new = (build.label for build in UPGRADE)
    page = store.parent / "site" / "compare" / old / f"{new}.html"
    shown = page.read_text()
    said = words_of(view(store, "compare", baseline=old, contender=new))
    (sentence,) = (word for word in said if word.startswith("Worse in 1 of 2 scenarios."))
    assert sentence in shown
    assert f'href="compare/{old}/{new}.html"' not in shown
    newest = max((store.parent / "site" / "run").glob("*.html"))
    assert f"compare/{old}/{new}.html" in newest.read_text()
    assert sentence in (store.parent / "site" / "compare.html").read_text()


def test_the_check_of_links_sees_a_wrong_one(store: Path) -> None:
    planted = (
        '<a href="run/nowhere.html">gone</a>',
        '<a href="../results/records">outside</a>',
        '<script src="https://cdn.example/plotly.js"></script>',
        '<img src="http://example.org/x.png">',
        '<a href="http://example.org/">not safe</a>',
    )
    write(store)
    page = store.parent / "site" / "index.html"
    page.write_text(page.read_text() + "".join(planted))
    assert len(broken_links(store.parent / "site")) == len(planted)


def test_a_figure_opens_no_run_that_has_no_page(store: Path) -> None:
    put(store, -400, builds=UPGRADE)
    write(store)
    site = store.parent / "site"
    assert not (site / "run" / "00000190.html").exists()
    page = next(site.glob("scenario/smoke/padded-graph-rows/*.html"))
    assert 'data-gone="00000190"' in page.read_text()
    assert broken_links(site) == []
    page.write_text(page.read_text().replace('data-gone="00000190"', ""))
    assert any("00000190" in link for link in broken_links(site))


def test_a_page_says_every_word_of_its_document_with_days_for_ages(store: Path) -> None:
    write(store)
    page = (store.parent / "site" / "index.html").read_text()
    shown = re.sub(r"<[^>]*>", "", page).replace("&#39;", "'").replace("&gt;", ">")
    words = [word for word in words_of(view(store, "overview")) if not re.search(_AGE, word)]
    assert len(words) > 20
    assert [word for word in words if word.strip() not in shown] == []
    assert not re.search(_AGE, shown)


def test_nothing_is_written_again_where_nothing_changed(store: Path) -> None:
    put(store, 30, builds=UPGRADE)  # three hours old, and later five
    first = write(store)
    stamped(store.parent / "site")
    again = write_site(
        replace(source_of(store), now=source_of(store).now + timedelta(hours=2)),
        store.parent / "site",
    )
    assert written(store.parent / "site") == set()
    assert (again.written, again.removed, again.files) == (0, 0, first.written)
    assert again.bytes == first.bytes


def test_a_new_run_writes_its_pages_and_no_others(store: Path) -> None:
    write(store)
    stamped(store.parent / "site")
    put(store, 46, scenario=OTHER, builds=UPGRADE)
    change = write(store)
    fresh = written(store.parent / "site")
    assert "run/0000002e.html" in fresh
    assert {path for path in fresh if path.startswith("scenario/smoke/padded")} == set()
    assert [path for path in fresh if path.startswith("run/")] == ["run/0000002e.html"]
    assert {"index.html", "runs.html", f"runs/{OTHER}.html", FILES} <= fresh
    assert change.written == len(fresh - {FILES})


def test_dead_pages_are_removed_and_files_of_others_stay(store: Path) -> None:
    write(store)
    site = store.parent / "site"
    (site / "CNAME").write_text("example.org\n")
    change = write(store, nights=2)
    assert change.removed > 0
    assert {path.stem for path in site.glob("run/*.html")} == {"0000002c", "0000002d"}
    assert (site / "CNAME").exists()
    assert set(json.loads((site / FILES).read_text())) == {
        path.relative_to(site).as_posix() for path in site.rglob("*.*") if path.is_file()
    } - {"CNAME", FILES}


def test_a_file_of_somebody_else_is_never_replaced(store: Path) -> None:
    site = store.parent / "site"
    site.mkdir()
    (site / "index.html").write_text("mine")
    with pytest.raises(ExportError, match=r"index\.html: expected no file"):
        write(store)
    assert (site / "index.html").read_text() == "mine"


def test_a_list_that_names_files_elsewhere_removes_nothing(store: Path) -> None:
    site = store.parent / "site"
    site.mkdir()
    kept = store.parent / "kept.html"
    kept.write_text("mine")
    (site / FILES).write_text('["../kept.html"]')
    with pytest.raises(ExportError, match=r"paths below its folder, found \.\./kept\.html"):
        write(store)
    assert kept.exists()


def test_the_feed_is_atom_with_ids_that_stay(store: Path) -> None:
    put(store, 7, scenario=HOSTILE, broken=3.0, builds=UPGRADE)
    write(store, base_url="https://example.org/site/")
    site = store.parent / "site"
    first = parsed((site / "feed.xml").read_text())
    for element in (first, *first.iter(f"{ATOM}entry")):
        names = [child.tag.removeprefix(ATOM) for child in element]
        assert {"id", "title", "updated", "link"} <= set(names)
    ids = [entry.findtext(f"{ATOM}id") for entry in first.iter(f"{ATOM}entry")]
    assert len(ids) == len(set(ids)) >= 2
    links = [entry.find(f"{ATOM}link") for entry in first.iter(f"{ATOM}entry")]
    for link in links:
        assert link is not None
        path = link.attrib["href"].removeprefix("https://example.org/site/")
        assert (site / path).is_file()
    put(store, 8, builds=UPGRADE)
    write(store)
    second = parsed((site / "feed.xml").read_text())
    after = [entry.findtext(f"{ATOM}id") for entry in second.iter(f"{ATOM}entry")]
    assert after[-len(ids) :] == ids


def test_the_badge_says_how_many_alerts_are_open(store: Path, tmp_path: Path) -> None:
    title = "{http://www.w3.org/2000/svg}title"
    told = parsed(render_badge(source_of(store))).findtext(title)
    assert str(told).startswith("hybridwatch: 1 open alert")
    calm = tmp_path / "calm"
    put(calm, 30, builds=UPGRADE)
    told = parsed(render_badge(source_of(calm))).findtext(title)
    assert told == "hybridwatch: no open alert"


def test_an_empty_store_is_a_site_too(tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    assert write(results).files > 8
    assert broken_links(tmp_path / "site") == []
