"""What becomes of a word that is no verb, and of a verb whose extra is not installed."""

import shlex
import subprocess
import sys
import tomllib

import pytest
from click.testing import CliRunner

from hybridwatch.cli.main import EXTRAS, VERBS, cli
from tests.wheels import ROOT


@pytest.mark.parametrize(("word", "meant"), [("comapre", "compare"), ("bisct", "bisect")])
def test_a_word_that_is_nearly_a_verb_is_answered_with_the_verb(word, meant) -> None:
    answer = CliRunner().invoke(cli, [word])
    assert answer.exit_code == 2
    assert f"No such command '{word}'. Did you mean '{meant}'?" in answer.output


def test_a_word_that_is_like_no_verb_is_only_refused() -> None:
    answer = CliRunner().invoke(cli, ["xyzzy"])
    assert answer.exit_code == 2
    assert "Did you mean" not in answer.output


@pytest.mark.parametrize(
    ("verb", "module", "extra"),
    [("serve", "uvicorn", "api"), ("index", "pandas", "dashboard"), ("run", "psutil", "measure")],
)
def test_a_verb_without_its_extra_names_the_command_that_installs_it(verb, module, extra) -> None:
    code = (
        f"import sys; sys.modules[{module!r}] = None; sys.argv[1:] = [{verb!r}, '--help']\n"
        "from hybridwatch.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith(f"hybridwatch: {verb}: needs the Python module '{module}")
    words = shlex.split(done.stderr.rpartition("; run: ")[2])
    assert words == [sys.executable, "-m", "pip", "install", "-e", f"{ROOT}[{extra}]"]


def test_every_extra_that_is_named_is_one_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {*EXTRAS.values(), "dashboard"} <= project["optional-dependencies"].keys()
    assert EXTRAS.keys() <= VERBS.keys()
