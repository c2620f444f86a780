"""What other distributions add: found by their entry points, in its place, and refused by name."""

from importlib.metadata import entry_points

import pytest

from hybridwatch.cli import main
from hybridwatch.cli.main import OF_LAB, VERBS, verbs
from hybridwatch.errors import HybridwatchError
from hybridwatch.system.home import loaded
from tests.command_line import run_verb

CODE = """
import click
from hybridwatch.cli.main import Verb

HELLO = Verb("Say hello.", "greeting", "greeting", after="run")
LAST = Verb("Say goodbye.", "greeting", "greeting")
RUN = Verb("Run away.", "greeting", "greeting")
LACKING = Verb("Lack something.", "lacking", "greeting")

@click.command()
def command():
    click.echo("hello")
"""
POINTS = """[console_scripts]
hello = greeting:command

[hybridwatch.commands]
hello = greeting:HELLO
last = greeting:LAST
run = greeting:RUN
lacking = greeting:LACKING

[hybridwatch.commands.engine]
greet = greeting:command
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a distribution ``greeting`` with these entry points."""

    def do(points=POINTS):
        (tmp_path / "greeting.py").write_text(CODE)
        (tmp_path / "lacking.py").write_text("import not_there\n")
        about = tmp_path / "greeting-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(points)

    monkeypatch.syspath_prepend(tmp_path)
    verbs.cache_clear()
    yield do
    verbs.cache_clear()


def said(*words, status=None):
    return run_verb(*words, status=status)


def test_a_verb_of_another_distribution_is_listed_in_its_place_and_called(install):
    install()
    names = list(verbs())
    assert names.index("hello") == names.index("run") + 1
    assert names[-2:] == ["lacking", "last"]
    assert said("hello").output == "hello\n"
    assert "Say hello." in said("--help").output
    assert "Did you mean 'hello'?" in said("helo").output


def test_a_verb_of_ours_stays_ours(install):
    install()
    assert verbs()["run"].module.startswith("hybridwatch.cli.run")


def test_a_verb_that_lacks_a_module_names_its_distribution(install):
    install()
    told = said("lacking", status=2)
    assert "needs the Python module 'not_there', which is not installed here" in told.output
    assert told.output.rstrip().endswith("-m pip install greeting")


@pytest.mark.parametrize("target", ["greeting:GONE", "greeting.gone:HELLO"])
def test_what_cannot_be_loaded_is_named(install, target):
    install(f"[hybridwatch.commands]\nhello = {target}\n")
    with pytest.raises(HybridwatchError, match=r"entry point hello of hybridwatch\.commands: "):
        verbs()


def test_what_an_uninstalled_distribution_has_left_behind_is_not_there(install):
    install("[hybridwatch.commands]\nhello = uninstalled.verbs:HELLO\n")
    assert "hello" not in verbs()


def test_our_reader_finds_what_importlib_finds():
    for group in ("hybridwatch.commands", "hybridwatch.commands.engine", "hybridwatch.screens"):
        names = {point.name for point in entry_points(group=group)}
        assert loaded(group).keys() == names
        assert names, "the lab is not installed: make lab"


def test_the_lab_has_the_verbs_that_are_said_to_be_its(monkeypatch):
    verbs.cache_clear()
    assert verbs().keys() - VERBS.keys() == OF_LAB
    monkeypatch.setattr(main, "extended", lambda own, _: dict(own))
    verbs.cache_clear()
    told = said("mutants")
    verbs.cache_clear()
    assert told.exit_code == 2
    assert told.output.startswith("hybridwatch: mutants: is part of hybridwatch-lab")
    assert told.output.rstrip().endswith("/lab")
