"""``hybridwatch dashboard``: what it starts, and what it refuses."""

from pathlib import Path

from hybridwatch.cli import dashboard as verb
from tests.command_line import run_verb
from tests.shipped import ROOT


class Started(Exception):  # noqa: N818 (not an error)
    """Raised instead of becoming the server."""


def test_verb_starts_streamlit_on_loopback_without_telemetry(tmp_path, monkeypatch) -> None:
    seen: dict[str, object] = {}

    def become(program: str, words: list[str], environment: dict[str, str]) -> None:
        seen.update(words=words, results=environment["HYBRIDWATCH_RESULTS"], cwd=Path.cwd())
        seen.update(home=environment["HYBRIDWATCH_HOME"])
        raise Started

    # It becomes a process in the folder of the app, which is another home.
    (tmp_path / "hybridwatch.toml").touch()
    monkeypatch.delenv("HYBRIDWATCH_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.execve", become)
    outcome = run_verb("--results", tmp_path, "--port", "8777", of=verb.command)
    assert isinstance(outcome.exception, Started)
    assert "http://127.0.0.1:8777" in outcome.output
    assert seen["results"] == str(tmp_path)
    assert seen["cwd"] == ROOT / "dashboard"
    assert seen["home"] == str(tmp_path)
    words = seen["words"]
    assert isinstance(words, list)
    assert {"--server.address=127.0.0.1", "--browser.gatherUsageStats=false"} <= set(words)
    assert "--server.headless=true" in words


def test_verb_refuses_a_folder_that_is_not_there(tmp_path: Path) -> None:
    outcome = run_verb("--results", tmp_path / "none", of=verb.command)
    assert isinstance(outcome.exception, verb.DashboardError)
    assert "expected a folder, found nothing" in str(outcome.exception)


def test_verb_says_how_to_get_streamlit(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    outcome = run_verb("--results", tmp_path, of=verb.command)
    assert isinstance(outcome.exception, verb.DashboardError)
    assert "pip install 'hybridwatch[dashboard]'" in str(outcome.exception)
