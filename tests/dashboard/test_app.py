import ast
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from streamlit.testing.v1 import AppTest

from hybridwatch.cli import dashboard as verb
from hybridwatch.store import write_run
from tests.store_builders import REGRESSED, STARTED, Plan, run, scenario

ROOT = Path(__file__).parents[2]
APP = ROOT / "dashboard" / "app.py"
HOSTILE = "<script>window.pwned = 1</script> [link](javascript:boom()) **bold**"

# Measuring libraries, and everything that a bot or a laptop would have to install for them.
FORBIDDEN = {"torch", "vllm", "lm_eval", "httpx", "psutil"}


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """The dashboard over an empty store in ``tmp_path``; fill it, then run."""
    monkeypatch.setenv("HYBRIDWATCH_RESULTS", str(tmp_path))
    return AppTest.from_file(str(APP), default_timeout=60)


def values(page: AppTest, *kinds: str) -> list[str]:
    """What the elements of some kinds say, as handed to the browser."""
    elements: list[Any] = [element for kind in kinds for element in page.get(kind)]
    return [element.proto.body if element.type == "html" else element.value for element in elements]


def texts(page: AppTest) -> str:
    """Everything the page says, however it is drawn."""
    kinds = ("title", "subheader", "text", "caption", "markdown", "code", "html")
    return "\n".join(values(page, *kinds))


def finished(page: AppTest) -> str:
    page.run()
    assert not page.exception
    return texts(page)


def test_empty_store_says_what_to_run(page: AppTest) -> None:
    said = finished(page)
    assert "No runs yet" in said
    assert "make run" in said
    assert not page.selectbox


def test_one_record_shows_verdicts_answers_and_history(page: AppTest, tmp_path: Path) -> None:
    path = write_run(tmp_path, run(REGRESSED))
    said = finished(page)
    assert "1 record from 1 testbed" in said
    assert "regression" in said
    assert "accuracy.recall" in said
    assert "Answers that changed" in said
    assert "Doubts" in said
    assert "hybridwatch run smoke/padded-graph-rows --build cpu-0.27.1" in said
    assert path.name in said
    assert len(page.get("plotly_chart")) == 11


def test_record_of_one_build_says_why_there_is_no_verdict(page: AppTest, tmp_path: Path) -> None:
    both = run(Plan())
    ours = [trial for trial in both.trials if trial.side == 0]
    trials = tuple(replace(trial, index=index) for index, trial in enumerate(ours))
    write_run(tmp_path, replace(both, builds=both.builds[:1], trials=trials))
    said = finished(page)
    assert "No run has two sides to compare yet." in said
    assert "expected 2" in said
    assert page.get("plotly_chart")


def test_broken_record_is_named_and_the_rest_is_shown(page: AppTest, tmp_path: Path) -> None:
    write_run(tmp_path, run(REGRESSED))
    cut = write_run(tmp_path, run(Plan(started_at=STARTED + timedelta(hours=1))))
    cut.write_bytes(cut.read_bytes()[:1000])
    said = finished(page)
    assert "1 record could not be read" in said
    assert cut.name in said
    assert "cut short" in said
    assert "Latest verdicts" in said


def test_only_broken_records_are_no_empty_store(page: AppTest, tmp_path: Path) -> None:
    write_run(tmp_path, run(REGRESSED)).write_bytes(b"{")
    said = finished(page)
    assert "1 record could not be read" in said
    assert "No run can be read." in said
    assert "make run" in said


def test_changed_record_is_read_again(page: AppTest, tmp_path: Path) -> None:
    path = write_run(tmp_path, run(REGRESSED))
    assert "could not be read" not in finished(page)
    path.write_bytes(b"{}")
    assert "1 record could not be read" in finished(page)


def test_page_opens_on_the_worst_and_writes_its_state_into_the_address(
    page: AppTest, tmp_path: Path
) -> None:
    write_run(tmp_path, run(REGRESSED))
    later = STARTED + timedelta(hours=1)
    write_run(tmp_path, run(Plan(started_at=later, scenario=scenario("smoke/other"))))
    finished(page)
    assert page.query_params["scenario"] == "smoke/padded-graph-rows"
    assert page.query_params["run"] == run(REGRESSED).id
    assert page.query_params["metric"] == "all"
    page.selectbox(key="scenario").set_value("smoke/other")
    page.selectbox(key="metric").set_value("itl p99")
    finished(page)
    assert page.query_params["scenario"] == "smoke/other"
    assert page.query_params["metric"] == "itl p99"
    assert len(page.get("plotly_chart")) == 1


def test_link_reopens_the_same_view(page: AppTest, tmp_path: Path) -> None:
    older, newer = run(replace(REGRESSED, seed=1)), run(replace(REGRESSED, seed=2))
    write_run(tmp_path, older)
    write_run(tmp_path, replace(newer, started_at=STARTED + timedelta(hours=1)))
    page.query_params["scenario"] = "smoke/padded-graph-rows"
    page.query_params["run"] = older.id
    page.query_params["metric"] = "accuracy.recall"
    finished(page)
    assert page.selectbox(key="run").value == older.id
    assert page.selectbox(key="metric").value == "accuracy.recall"
    assert page.query_params["run"] == older.id


def test_link_to_a_run_that_is_gone_says_so(page: AppTest, tmp_path: Path) -> None:
    write_run(tmp_path, run(REGRESSED))
    page.query_params["run"] = "00000000"
    said = finished(page)
    assert "The link asks for '00000000', which is not in this store." in said
    assert page.query_params["run"] == run(REGRESSED).id


def test_text_of_records_is_never_read_as_markup(page: AppTest, tmp_path: Path) -> None:
    made = run(replace(REGRESSED, text=HOSTILE, scenario=scenario(HOSTILE), failed_trials=1))
    builds = tuple(replace(build, label=build.label + HOSTILE) for build in made.builds)
    write_run(tmp_path, replace(made, builds=builds))
    finished(page)
    read_as_markdown = values(page, "title", "subheader", "caption", "markdown")
    read_as_markdown += [element.label for element in page.expander]
    assert not [body for body in read_as_markdown if "bold" in body or "script" in body]
    read_as_html = values(page, "html")
    assert sum("&lt;script&gt;window.pwned = 1&lt;/script&gt;" in body for body in read_as_html)
    assert not [body for body in read_as_html if "<script" in body]


def test_pages_import_nothing_that_measures() -> None:
    for path in (ROOT / "dashboard").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not FORBIDDEN & {name.partition(".")[0] for name in names}, path


def test_reading_side_loads_nothing_that_measures() -> None:
    code = (
        "import sys, hybridwatch.views.board, hybridwatch.views.figures, hybridwatch.views.markup;"
        f"print(sorted({FORBIDDEN!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "[]"


class Started(Exception):  # noqa: N818 (not an error)
    """Raised instead of becoming the server."""


def test_verb_starts_streamlit_on_loopback_without_telemetry(tmp_path, monkeypatch) -> None:
    seen: dict[str, object] = {}

    def become(program: str, words: list[str], environment: dict[str, str]) -> None:
        seen.update(words=words, results=environment["HYBRIDWATCH_RESULTS"], cwd=Path.cwd())
        raise Started

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.execve", become)
    outcome = CliRunner().invoke(verb.command, ["--results", str(tmp_path), "--port", "8777"])
    assert isinstance(outcome.exception, Started)
    assert "http://127.0.0.1:8777" in outcome.output
    assert seen["results"] == str(tmp_path)
    assert seen["cwd"] == ROOT / "dashboard"
    words = seen["words"]
    assert isinstance(words, list)
    assert {"--server.address=127.0.0.1", "--browser.gatherUsageStats=false"} <= set(words)
    assert "--server.headless=true" in words


def test_verb_refuses_a_folder_that_is_not_there(tmp_path: Path) -> None:
    outcome = CliRunner().invoke(verb.command, ["--results", str(tmp_path / "none")])
    assert isinstance(outcome.exception, verb.DashboardError)
    assert "expected a folder, found nothing" in str(outcome.exception)


def test_verb_says_how_to_get_streamlit(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    outcome = CliRunner().invoke(verb.command, ["--results", str(tmp_path)])
    assert isinstance(outcome.exception, verb.DashboardError)
    assert "pip install 'hybridwatch[dashboard]'" in str(outcome.exception)


def test_verb_needs_a_checkout(tmp_path: Path) -> None:
    with pytest.raises(verb.DashboardError, match="started from a checkout"):
        verb.find_app(tmp_path)
