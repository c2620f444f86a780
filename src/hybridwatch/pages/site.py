"""A store as a static, read-only site: pages of the same documents as the dashboard's.

The pages share one script, one style and plotly, request nothing from elsewhere, and hold no moment
at which they were written: what did not change is written as it was, and such a file is left alone.
``FILES`` in the folder lists what was written, so that only our own files are ever removed.

An Atom feed (RFC 4287) and a badge are for those who do not open it. An entry of the feed is a
change of one alert by one run: opened, opened again, over. Its id is made of these three, so that
no reader gets anything twice, wherever the site lies.
"""

import json
import posixpath
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from pydantic import TypeAdapter, ValidationError

from hybridwatch.analysis.alert_timeline import Timeline, Transition
from hybridwatch.analysis.alerts import Status
from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.wording.cause_text import cause_sentence
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.errors import ExportError
from hybridwatch.history.alerts import find_timelines
from hybridwatch.pages.address import address
from hybridwatch.pages.document import Chart, Document
from hybridwatch.pages.html import ENVIRONMENT, GROUND, SCRIPT, STYLE, HtmlContext, all_blocks
from hybridwatch.pages.screens import ScreenSource, build_view
from hybridwatch.pages.screens.screen import alerts_here, gaps_here
from hybridwatch.pages.site_map import SiteMap, plan_site
from hybridwatch.reports.alert_text import alert_text, is_control
from hybridwatch.reports.figures.base import plotly_script

FILES: Final = "site-files.json"
NIGHTS: Final = 90
_ASSETS: Final = ("assets/plotly.js", "assets/page.js", "assets/page.css")
_PLOTLY, _PAGE, _STYLE = _ASSETS
_FEED: Final = "feed.xml"
_BADGE: Final = "badge.svg"
_LIST: Final = TypeAdapter(list[str])
_SITE_STYLE: Final = """
nav { max-width: 80rem; margin: 0 auto; padding: 0.8rem clamp(0.8rem, 3vw, 2rem) 0;
  display: flex; flex-wrap: wrap; gap: 0.2rem 1.1rem; font-size: 0.9rem; }
footer a { color: inherit; }
nav a { color: inherit; text-decoration: none; padding: 0.2rem 0; }
nav a:hover { text-decoration: underline; }
nav a[aria-current] { font-weight: 600; border-bottom: 2px solid currentColor; }
nav + main { padding-top: 0.8rem; }
span.hw-link { text-decoration: none; }
"""


@dataclass(frozen=True, slots=True)
class SiteChange:
    """How many files and bytes a site has, and how many files were changed or removed."""

    files: int
    written: int
    removed: int
    bytes: int

    def to_json(self) -> dict[str, Any]:
        """Give it as plain JSON; fields as in ``docs/json.md``."""
        return {"schema_version": 1, **asdict(self)}


def write_site(
    source: ScreenSource,
    folder: Path,
    *,
    nights: int = NIGHTS,
    base_url: str = "",
    on_progress: Callable[[int, int], object] | None = None,
) -> SiteChange:
    """Write the site of a store, with the runs of its last ``nights``, or bring it up to date.

    ``base_url``, with its last slash, is for the links of the feed; ``on_progress`` gets how many
    files there are so far, and how many there will be.

    Raises:
        ExportError: The folder holds something else, or cannot be written to.
        HybridwatchError: The store cannot be read.
    """
    site = plan_site(source, nights)
    paths = [*_ASSETS, *site.pages, _FEED, _BADGE]
    try:
        before = _read_files(folder, paths)
        _write_files(folder, {*before, *paths})  # whatever ends us, all of ours is listed
        written = size = 0
        for done, (path, text) in enumerate(_texts(source, site, base_url), start=1):
            content = text.encode()
            written += _put(folder / path, content)
            size += len(content)
            if on_progress:
                on_progress(done, len(paths))
        dead = before - set(paths)
        for path in dead:
            (folder / path).unlink(missing_ok=True)
        _write_files(folder, paths)
    except OSError as error:
        raise ExportError(
            f"{error.filename or folder}: cannot be written: {error.strerror or error}"
        ) from error
    return SiteChange(len(paths), written, len(dead), size)


def _texts(source: ScreenSource, site: SiteMap, base_url: str) -> Iterator[tuple[str, str]]:
    """Write every file; the pages that lead to the others last."""
    yield from zip(_ASSETS, (plotly_script(), SCRIPT, GROUND + STYLE + _SITE_STYLE), strict=True)
    for path, to in reversed([*site.pages.items()]):
        yield path, render_page(build_view(source, to), path, site)
    yield _FEED, render_feed(source, site, base_url)
    yield _BADGE, render_badge(source)


def render_page(document: Document, path: str, site: SiteMap) -> str:
    """Write a view as the page of a site that lies at a path."""
    root = posixpath.relpath(".", posixpath.dirname(path) or ".") + "/"
    drawn = any(isinstance(block, Chart) for block in all_blocks(document.blocks))
    context = HtmlContext(
        lambda to: site.find(to, path),
        dated=True,
        packed=True,
        is_run_there=site.has_run,
        run_suffix=".html",
    )
    return ENVIRONMENT.get_template("site.html").render(
        context=context,
        document=document,
        navigation={title: root + to for title, to in site.navigation.items()},
        here=root + path,
        root=root,
        scripts=[_PLOTLY, _PAGE] if drawn else [_PAGE],
        style=_STYLE,
        feed=_FEED,
    )


def _put(path: Path, content: bytes) -> bool:
    """Write a file unless it says so already; gives whether it was written."""
    with suppress(FileNotFoundError):
        if path.read_bytes() == content:
            return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return True


def _read_files(folder: Path, paths: Sequence[str]) -> set[str]:
    """Read which files an earlier call wrote; refuse to take the place of any other."""
    listed = folder / FILES
    try:
        before = set(_LIST.validate_json(listed.read_bytes()))
    except FileNotFoundError:
        before = set()
    except ValidationError as error:
        raise ExportError(f"{listed}: expected a list of the files of a site") from error
    if outside := sorted(path for path in before if ".." in path.split("/") or path[:1] == "/"):
        raise ExportError(f"{listed}: expected paths below its folder, found {outside[0]}")
    if foreign := [path for path in paths if path not in before and (folder / path).exists()]:
        raise ExportError(f"{folder / foreign[0]}: expected no file, found one that no site wrote")
    return before


def _write_files(folder: Path, paths: Collection[str]) -> None:
    _put(folder / FILES, (json.dumps(sorted(paths), indent=0) + "\n").encode())


_ENTRIES: Final = 100
_NAME: Final = "hybridwatch"
_LETTER: Final = 6.6
"""Pixels, of eleven-pixel type; each text is drawn to its own length."""
_NO_RUN: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BAD, _WARNING, _GOOD = "#b3261e", "#8a5300", "#0b6b5b"
"""4.5:1 and more below white."""


def render_feed(source: ScreenSource, site: SiteMap, base_url: str) -> str:
    """Write the newest changes of alerts as an Atom feed; links are relative without a base."""
    entries = sorted(_entries(source, site), key=itemgetter("at", "id"), reverse=True)
    return ENVIRONMENT.get_template("feed.xml").render(
        id=f"urn:uuid:{uuid5(NAMESPACE_URL, base_url or _NAME)}",
        updated=entries[0]["at"] if entries else _NO_RUN,
        base_url=base_url,
        entries=entries[:_ENTRIES],
    )


def _entries(source: ScreenSource, site: SiteMap) -> Iterator[dict[str, Any]]:
    for timeline in find_timelines(source.index, source.checkout()).everything:
        path = site.find(address("alerts", alert=timeline.subject.key), "index.html")
        if path is not None:
            yield from (_entry(timeline, change, path) for change in timeline.transitions)


def _entry(timeline: Timeline, transition: Transition, path: str) -> dict[str, Any]:
    subject, kind, run = timeline.subject, transition.change.value, transition.by.run_id
    cause = transition.by.cause
    named = cause is not None and not is_control(timeline) and not transition.change.is_end
    text = cause_sentence(cause) if named and cause else alert_text(timeline).sentence()
    facts = json.dumps([subject.key, run, kind])
    return {
        "id": f"urn:uuid:{uuid5(NAMESPACE_URL, facts)}",
        "at": transition.by.started_at,
        "kind": kind,
        "title": f"{kind.capitalize()}: {subject.scenario}: {text}",
        "summary": f"{subject.baseline} → {subject.contender} on {subject.testbed}, run {run}",
        "path": path,
    }


def render_badge(source: ScreenSource) -> str:
    """Say in a few words how a store stands, as an SVG."""
    found = [group for group in alerts_here(source) if group.status is Status.OPEN]
    missing = len(gaps_here(source))
    words = [f"{plural(len(found), 'open alert')}"] if found else []
    words += [f"{missing} not measured"] if missing else []
    is_blocking = any(group.rank is Action.BLOCK for group in found)
    text = ", ".join(words) or "no open alert"
    return ENVIRONMENT.get_template("badge.svg").render(
        name=_NAME,
        text=text,
        colour=_BAD if is_blocking else _WARNING if words else _GOOD,
        left=round(len(_NAME) * _LETTER) + 12,
        right=round(len(text) * _LETTER) + 12,
    )
