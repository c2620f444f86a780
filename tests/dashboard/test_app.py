import ast
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import frame
import pytest
import warm_up
from streamlit.testing.v1 import AppTest

from hybridwatch.pages.address import HOME, Address
from hybridwatch.pages.screens import SCREENS
from hybridwatch.records.store import write_run
from tests.dashboard.live import (
    address_of,
    files_of,
    html_of,
    page_of,
    pages_of,
    said_by,
    turn_to,
    whole_app,
)
from tests.store_builders import REGRESSED, STARTED, Plan, run, scenario

ROOT = Path(__file__).parents[2]
HOSTILE = "<script>window.pwned = 1</script> [link](javascript:boom()) **bold** :smile: $x$"

# Measuring libraries, and everything that a bot or a laptop would have to install for them.
FORBIDDEN = {"torch", "vllm", "lm_eval", "httpx", "psutil"}


@pytest.fixture
def open_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_later: None
) -> Callable[..., AppTest]:
    """Opens a screen over the store in ``tmp_path``."""
    monkeypatch.setenv("HYBRIDWATCH_RESULTS", str(tmp_path))
    monkeypatch.setattr(frame, "_FRESH_S", 0)

    def opened(screen: str, **parameters: str | list[str]) -> AppTest:
        page = page_of(screen)
        for name, value in parameters.items():
            page.query_params[name] = value
        return run_again(page)

    return opened


def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Stop the clock by which the store is looked at; gives its one moment."""
    moment = [time.monotonic() + 100]
    monkeypatch.setattr(frame, "time", SimpleNamespace(monotonic=lambda: moment[0]))
    return moment


def outdated(
    open_page: Callable[..., AppTest], results: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[AppTest, list[float]]:
    """Add a run behind an open page that has just looked; gives it, and the stopped clock."""
    write_run(results, run(REGRESSED))
    page = open_page("runs")
    moment = stopped_clock(monkeypatch)
    monkeypatch.setattr(frame, "_FRESH_S", 2)
    run_again(page)
    write_run(results, run(Plan(started_at=STARTED + timedelta(hours=1))))
    return page, moment


def run_again(page: AppTest) -> AppTest:
    page.run()
    assert not page.exception
    return page


def state_of(page: AppTest) -> dict[str, list[str]]:
    """What the page's address says."""
    address = address_of(page)
    return {name: list(address.values(name)) for name, _ in address.parameters}


def test_the_app_opens_on_the_overview_and_has_a_page_for_every_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_later: None
) -> None:
    monkeypatch.setenv("HYBRIDWATCH_RESULTS", str(tmp_path))
    app = run_again(whole_app())
    assert "make run" in said_by(app)
    assert set(pages_of(app)) == {"", *SCREENS} - {HOME}
    for name in set(SCREENS) - {HOME}:
        turn_to(app, name)
        assert address_of(run_again(app)).screen == name


@pytest.mark.parametrize("screen", SCREENS)
def test_an_empty_store_is_no_traceback(screen: str, open_page: Callable[..., AppTest]) -> None:
    assert len(said_by(open_page(screen))) > 20


def test_empty_store_says_what_to_run(open_page: Callable[..., AppTest]) -> None:
    said = said_by(open_page("runs"))
    assert "No runs yet" in said
    assert "make run" in said


def test_one_record_shows_verdicts_answers_and_trials(open_page, tmp_path) -> None:
    path = write_run(tmp_path, run(REGRESSED))
    page = open_page("run", metric="all")
    said = said_by(page)
    assert "regression" in said
    assert "accuracy.recall" in said
    assert "Answers that changed" in said
    assert "Doubts" in said
    assert "hybridwatch run smoke/padded-graph-rows --build cpu-0.27.1" in said
    assert path.name in said
    assert len(page.get("plotly_chart")) == 11
    assert len(files_of(page)) == 12  # and of the table


def test_broken_record_is_named_and_the_rest_is_shown(open_page, tmp_path) -> None:
    write_run(tmp_path, run(REGRESSED))
    cut = write_run(tmp_path, run(Plan(started_at=STARTED + timedelta(hours=1))))
    cut.write_bytes(cut.read_bytes()[:1000])
    said = said_by(open_page("runs"))
    assert "1 record could not be read" in said
    assert cut.name in said
    assert "1 run on 1 testbed" in said


def test_only_broken_records_are_no_empty_store(open_page, tmp_path) -> None:
    write_run(tmp_path, run(REGRESSED)).write_bytes(b"{")
    said = said_by(open_page("runs"))
    assert "1 record could not be read" in said
    assert "No run can be read." in said


def test_changed_record_is_read_again(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    path = write_run(tmp_path, run(REGRESSED))
    page = open_page("runs")
    assert "could not be read" not in said_by(page)
    path.write_bytes(b"{}")
    assert "1 record could not be read" in said_by(run_again(page))


def test_a_run_that_was_added_is_shown_at_the_next_look(open_page, tmp_path) -> None:
    write_run(tmp_path, run(REGRESSED))
    page = open_page("runs")
    assert "1 run on 1 testbed" in said_by(page)
    write_run(tmp_path, run(Plan(started_at=STARTED + timedelta(hours=1))))
    assert "2 runs on 1 testbed" in said_by(run_again(page))


def test_clicks_in_quick_succession_share_one_look_at_the_store(open_page, tmp_path, monkeypatch):
    page, moment = outdated(open_page, tmp_path, monkeypatch)
    moment[0] += 1
    assert "1 run on 1 testbed" in said_by(run_again(page))
    moment[0] += 2
    assert "2 runs on 1 testbed" in said_by(run_again(page))


def test_a_filter_picks_from_what_the_page_shows_and_does_not_look_at_the_store(
    open_page: Callable[..., AppTest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, moment = outdated(open_page, tmp_path, monkeypatch)
    moment[0] += 5
    page.multiselect(key="scenario").set_value(["smoke/padded-graph-rows"])
    assert "1 run on 1 testbed" in said_by(run_again(page))
    assert "2 runs on 1 testbed" in said_by(run_again(page))


def test_what_is_likely_next_is_laid_out_once_a_page_is_opened_not_at_a_filter(
    open_page: Callable[..., AppTest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later: list[str] = []

    class Timer:
        def __init__(self, _: float, view: object, told: tuple[object, tuple[Address]]) -> None:
            assert view is frame._open
            later.extend(address.query() for address in told[1])

        def start(self) -> None:
            pass

    monkeypatch.setattr("frame.threading.Timer", Timer)
    write_run(tmp_path, run(REGRESSED))
    page = open_page("scenario")
    along, more = later
    assert "along=release" in along
    assert "runs=200" in more
    page.selectbox(key="runs").set_value("200")
    run_again(page)
    assert later == [along, more]


def test_the_index_is_open_before_the_first_reader(tmp_path, monkeypatch, nothing_later) -> None:
    write_run(tmp_path, run(REGRESSED))
    monkeypatch.setenv("HYBRIDWATCH_RESULTS", str(tmp_path))
    warm_up.start().join()
    monkeypatch.setattr(frame, "open_index", not_again)
    assert "1 run on 1 testbed" in said_by(run_again(page_of("runs")))


def not_again(*_: object) -> None:
    raise AssertionError


def test_who_waits_for_the_reading_of_another_is_shown_how_far_it_is(tmp_path: Path) -> None:
    write_run(tmp_path, run(REGRESSED))
    shared = frame._SharedIndex(tmp_path)
    is_reading, is_shown = threading.Event(), threading.Event()
    shown: list[tuple[int, int]] = []

    def hold(done: int, _new: int) -> None:
        if done:
            is_reading.set()
            is_shown.wait(60)

    def show(done: int, new: int) -> None:
        shown.append((done, new))
        is_shown.set()

    other = threading.Thread(target=shared.index, args=(0, hold), daemon=True)
    other.start()
    assert is_reading.wait(60)
    assert shared.index(0, show).counts["records"] == 1
    other.join(60)
    assert shown[0] == (1, 1)


def test_a_store_that_grows_is_reported_while_the_page_is_open(open_page, tmp_path, monkeypatch):
    write_run(tmp_path, run(REGRESSED))
    moment = stopped_clock(monkeypatch)
    page = open_page("runs")
    assert "since you opened this" not in said_by(page)
    monkeypatch.setattr(frame, "_FRESH_S", 100)  # the page does not look, its timer does
    for hours in (1, 2):
        write_run(tmp_path, run(Plan(started_at=STARTED + timedelta(hours=hours))))
    assert "since you opened this" not in said_by(run_again(page))
    moment[0] += 10
    assert "2 new runs since you opened this" in said_by(run_again(page))
    assert "3 runs on 1 testbed" in said_by(run_again(page))


def test_picking_writes_into_the_address_and_a_default_leaves_it(open_page, tmp_path) -> None:
    write_run(tmp_path, run(REGRESSED))
    page = open_page("run")
    assert state_of(page) == {"run": [run(REGRESSED).id]}
    first = page.selectbox(key="metric").value
    page.selectbox(key="metric").set_value("itl p99")
    run_again(page)
    assert state_of(page)["metric"] == ["itl p99"]
    assert len(page.get("plotly_chart")) == 1
    page.selectbox(key="metric").set_value(first)
    run_again(page)
    assert "metric" not in state_of(page)


def test_filters_stand_several_times_in_the_address_and_drop_the_page(
    open_page: Callable[..., AppTest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybridwatch.pages.query.PAGE_ROWS", 1)
    for hours, name in enumerate(("smoke/a", "smoke/b", "smoke/c")):
        later = STARTED + timedelta(hours=hours)
        write_run(tmp_path, run(Plan(started_at=later, scenario=scenario(name))))
    page = open_page("runs", page="2")
    assert "Page 2 of 3" in said_by(page)
    page.multiselect(key="scenario").set_value(["smoke/a", "smoke/c"])
    run_again(page)
    assert state_of(page) == {"scenario": ["smoke/a", "smoke/c"]}
    assert "Page 1 of 2" in said_by(page)


def test_link_reopens_the_same_view(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    older, newer = run(replace(REGRESSED, seed=1)), run(replace(REGRESSED, seed=2))
    write_run(tmp_path, older)
    write_run(tmp_path, replace(newer, started_at=STARTED + timedelta(hours=1)))
    asked = {"run": older.id, "metric": "itl p99"}
    page = open_page("run", **asked)
    assert page.selectbox(key="run").value == older.id
    assert page.selectbox(key="metric").value == "itl p99"
    assert state_of(page) == {name: [value] for name, value in asked.items()}
    # The address changes under the page, as the back button does it.
    page.query_params["metric"] = "ttft p99"
    assert run_again(page).selectbox(key="metric").value == "ttft p99"


def test_link_to_a_run_that_is_gone_says_so(open_page, tmp_path) -> None:
    write_run(tmp_path, run(REGRESSED))
    page = open_page("run", run="00000000", flavour="<b>mint</b>")
    said = said_by(page)
    assert "The link names run '00000000', which is not in this store." in said
    assert "No such run" in said
    assert "See 1 run of this store." in said
    assert state_of(page) == {"run": ["00000000"], "flavour": ["<b>mint</b>"]}, "as it was typed"


@pytest.fixture(scope="module")
def hostile_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one run of hostile texts; no test writes to it."""
    results = tmp_path_factory.mktemp("hostile")
    made = run(replace(REGRESSED, text=HOSTILE, scenario=scenario(HOSTILE), failed_trials=1))
    builds = tuple(replace(build, label=build.label + HOSTILE) for build in made.builds)
    write_run(results, replace(made, builds=builds))
    return results


@pytest.mark.parametrize("screen", SCREENS)
def test_text_of_records_is_never_read_as_markup(screen, open_page, hostile_store, monkeypatch):
    monkeypatch.setenv("HYBRIDWATCH_RESULTS", str(hostile_store))
    page = open_page(screen)
    marked: list[Any] = [
        each for kind in ("title", "subheader", "caption", "markdown") for each in page.get(kind)
    ]
    read_as_markdown = [each.value for each in marked] + [each.label for each in page.expander]
    assert not [text for text in read_as_markdown if "**bold" in text or ":smile:" in text]
    read_as_html = html_of(page)
    if screen in {"runs", "run"}:  # the others need not speak of this run
        assert "&lt;script&gt;window.pwned = 1&lt;/script&gt;" in read_as_html
    figures = '<script type="application/json">'
    assert read_as_html.count("<script") == read_as_html.count(figures)


def test_pages_import_nothing_that_measures() -> None:
    for path in (ROOT / "dashboard").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not FORBIDDEN & {name.partition(".")[0] for name in names}, path


def test_reading_side_loads_nothing_that_measures() -> None:
    code = (
        "import sys, hybridwatch.pages.html, hybridwatch.pages.screens.run;"
        f"print(sorted({FORBIDDEN!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "[]"
