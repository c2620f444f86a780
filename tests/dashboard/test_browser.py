"""The dashboard as a person sees it: the real server, a real browser."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from playwright.sync_api import TimeoutError as NotSeenError

from hybridwatch.store import write_run
from tests.store_builders import REGRESSED, Plan, run

pytestmark = pytest.mark.browser

ROOT: Final = Path(__file__).parents[2]

RECORDED: Final = ROOT / "results"
"""The committed records; among them a known-bad control, whose regression must be seen."""
METRIC: Final = "accuracy.recall"

SKIP: Final = "HYBRIDWATCH_SKIP_BROWSER"
FLAGS: Final = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
]
STARTING_S: Final = 60
ENDING_S: Final = 10
SEEN_MS: Final = 30_000
UNSEEN_MS: Final = 2_000

HOSTILE: Final = (
    "<script>window.pwned = 1</script> "
    '<img src=x onerror="window.pwned = 1"> [link](javascript:window.pwned=1) **bold**'
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if os.environ.get(SKIP) == "1":
        pytest.skip(f"{SKIP}=1")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.fail(f"no chromium on the PATH: apt-get install chromium, or set {SKIP}=1")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1400, "height": 1200})
    page = context.new_page()
    page.set_default_timeout(SEEN_MS)
    yield page
    context.close()


@contextmanager
def served(results: Path) -> Iterator[str]:
    """Run ``hybridwatch dashboard`` over a store; gives its address, and always ends it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = [sys.executable, "-c", "from hybridwatch.cli.main import main; main()"]
    process = subprocess.Popen(
        [*program, "dashboard", "--results", str(results), "--port", str(port)],
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        address = f"http://127.0.0.1:{port}"
        wait_until_healthy(address, process)
        yield address
    finally:
        end(process)


def wait_until_healthy(address: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + STARTING_S
    while time.monotonic() < deadline:
        assert process.poll() is None, f"the server ended with status {process.returncode}"
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2):  # noqa: S310
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    pytest.fail(f"no answer from {address} within {STARTING_S} s")


def end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
        try:
            process.wait(timeout=ENDING_S)
        except subprocess.TimeoutExpired:
            continue
        return


@pytest.fixture(scope="module")
def regressed() -> Iterator[str]:
    """The address of a dashboard over the committed records."""
    with served(RECORDED) as address:
        yield address


def wait_for_verdict(page: Page, metric: str, word: str, timeout_ms: int = SEEN_MS) -> None:
    """Wait until the row of one metric shows one verdict.

    Raises:
        NotSeenError: It does not within the time.
    """
    # The row's own cell must hold the metric, so that a headline that names it does not count.
    name = page.locator("td.hw-name").get_by_text(metric, exact=True)
    row = page.locator("table.hw tr").filter(has=name)
    row.get_by_text(word).first.wait_for(state="visible", timeout=timeout_ms)


def wait_for_figures(page: Page) -> None:
    page.locator(".js-plotly-plot .scatterlayer").first.wait_for(state="visible")


def test_regression_is_shown_on_the_right_metric(regressed: str, page: Page) -> None:
    page.goto(regressed)
    wait_for_verdict(page, METRIC, "regression")
    page.get_by_text("Answers that changed").wait_for(state="visible")
    page.get_by_text("baseline: right").first.wait_for(state="visible")
    page.get_by_text("contender: wrong").first.wait_for(state="visible")
    wait_for_figures(page)


def test_healthy_metric_of_a_regressed_run_does_not_show_the_word(
    page: Page, tmp_path: Path
) -> None:
    write_run(tmp_path, run(REGRESSED))
    with served(tmp_path) as address:
        page.goto(address)
        wait_for_verdict(page, "ttft median", "equivalent")
        with pytest.raises(NotSeenError):
            wait_for_verdict(page, "ttft median", "regression", UNSEEN_MS)


def test_check_for_the_regression_fails_on_an_a_a_record(page: Page, tmp_path: Path) -> None:
    write_run(tmp_path, run(Plan()))
    with served(tmp_path) as address:
        page.goto(address)
        page.locator("td.hw-name").get_by_text(METRIC, exact=True).wait_for(state="visible")
        with pytest.raises(NotSeenError):
            wait_for_verdict(page, METRIC, "regression", UNSEEN_MS)


def test_link_reopens_the_same_view(regressed: str, page: Page, browser: Browser) -> None:
    page.goto(regressed)
    wait_for_figures(page)
    page.get_by_label("Metric").last.click()
    page.get_by_role("option", name=METRIC).click()
    page.wait_for_url("**metric=accuracy.recall**")
    asked = parse_qs(urlsplit(page.url).query)
    assert set(asked) == {"scenario", "run", "metric"}
    elsewhere = browser.new_context().new_page()
    try:
        elsewhere.goto(page.url)
        wait_for_figures(elsewhere)
        elsewhere.locator(".js-plotly-plot .gtitle").get_by_text(METRIC).wait_for()
        assert elsewhere.locator(".js-plotly-plot").count() == 1
        assert parse_qs(urlsplit(elsewhere.url).query) == asked
    finally:
        elsewhere.context.close()


def test_hostile_text_shows_as_text_and_does_not_run(page: Page, tmp_path: Path) -> None:
    plan = replace(REGRESSED, text=HOSTILE, scenario=replace(REGRESSED.scenario, id=HOSTILE))
    made = run(replace(plan, failed_trials=1, testbed=replace(plan.testbed, id=HOSTILE)))
    builds = tuple(replace(build, label=build.label + HOSTILE) for build in made.builds)
    harness = replace(made.harness, revision=HOSTILE)
    write_run(tmp_path, replace(made, builds=builds, harness=harness))
    with served(tmp_path) as address:
        page.goto(address)
        wait_for_verdict(page, METRIC, "regression")
        wait_for_figures(page)
        page.get_by_text("contender: wrong").first.wait_for(state="visible")
        said = page.locator("body").inner_text()
        # Scenario, builds and testbed in the table, answers in their boxes, legends in figures.
        assert said.count("<script>window.pwned = 1</script>") >= 8
        assert said.count("[link](javascript:window.pwned=1) **bold**") >= 8
        # Trace 0 is the line of medians, which has no hover; trace 1 the trials.
        trials = page.locator(".js-plotly-plot").first.locator(".scatterlayer .trace").nth(1)
        point = trials.locator(".point").first
        point.hover(force=True)
        page.locator(".hoverlayer .hovertext").first.wait_for()
        assert page.locator("img[src='x']").count() == 0
        assert page.locator("a[href^='javascript'], a[*|href^='javascript']").count() == 0
        assert page.evaluate("window.pwned === undefined")
