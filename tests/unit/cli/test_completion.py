"""What a shell is offered at TAB, as click asks for it."""

from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from hybridwatch.cli.main import cli, verbs
from hybridwatch.records.store import write_run
from tests.builders import a_run
from tests.checkout import make_checkout

GOOD = {"contract.padded_rows_prefilling": (0.0,)}


@pytest.fixture
def offered(tmp_path, monkeypatch):
    """A checkout with a scenario, a build and a run, and what is offered there."""
    make_checkout(tmp_path, "smoke/padded", "smoke/again")
    write_run(tmp_path / "results", a_run(GOOD, GOOD))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HYBRIDWATCH_HOME", raising=False)
    shell = ShellComplete(cli, {}, "hybridwatch", "_HYBRIDWATCH_COMPLETE")

    def ask(*words: str) -> list[str]:
        *before, last = words
        return [item.value for item in shell.get_completions(before, last)]

    return ask


@pytest.mark.parametrize("verb", ["run", "controls", "nightly"])
def test_scenarios_and_their_groups(offered, verb) -> None:
    assert offered(verb, "s") == ["smoke", "smoke/again", "smoke/padded"]
    assert offered(verb, "smoke/p") == ["smoke/padded"]


def test_builds_and_what_can_be_switched_on_them(offered) -> None:
    assert offered("run", "--build", "t") == ["tiny-1.0"]
    switched = offered("run", "--build", "tiny-1.0~padded")
    assert switched == ["tiny-1.0~padded-rows-prefilling"]
    assert "tiny-1.0~conv-anchor+slow-step" in offered("run", "--build", "tiny-1.0~conv-anchor+s")
    assert offered("run", "--build", "tiny-1.0~slow") == [], "no release has that fault"


@pytest.mark.parametrize("verb", ["compare", "gate", "comment", "export"])
def test_runs_by_their_ids(offered, verb) -> None:
    assert offered(verb, "") == ["latest", "1f0a9c3e"]
    assert offered(verb, "1f") == ["1f0a9c3e"]
    assert offered(verb, "--results", "elsewhere", "1f") == []


def test_verbs_and_their_own_words(offered) -> None:
    assert offered("com") == ["compare", "comment"]
    assert offered("") == list(verbs())
    assert offered("explain", "l") == ["latest"]


def test_outside_of_a_checkout_or_with_a_broken_one_nothing_is_offered_and_nothing_said(
    offered, tmp_path: Path, capsys
) -> None:
    (tmp_path / "engine" / "builds.toml").write_text("[")
    assert offered("run", "--build", "t") == []
    assert capsys.readouterr() == ("", "")
