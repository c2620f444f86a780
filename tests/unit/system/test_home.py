"""Which folder is the home, and how it extends what is shipped."""

from pathlib import Path

import pytest

from hybridwatch.cli.options import default_results
from hybridwatch.errors import BuildError
from hybridwatch.system import home as homes
from hybridwatch.system.home import (
    HOME_VARIABLE,
    MARKER,
    home,
    home_or_shipped,
    is_checkout,
    layers,
    shipped,
)
from tests.shipped import ROOT


@pytest.fixture
def marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home; the working directory lies below it."""
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / MARKER).touch()
    monkeypatch.delenv(HOME_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path / "deep" / "er")
    return tmp_path


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data of a wheel, from which this code seems to run; nothing is a home here."""
    data = tmp_path / "site" / "hybridwatch" / "data"
    (data / "engine").mkdir(parents=True)
    (data / "engine" / "builds.toml").touch()
    monkeypatch.setattr(homes, "is_checkout", lambda: False)
    monkeypatch.setattr(homes, "shipped", lambda: data)
    monkeypatch.delenv(HOME_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    return data


def test_these_tests_run_from_a_checkout() -> None:
    assert is_checkout()
    assert shipped() == ROOT


def climbing(folder: Path) -> list[str]:
    """Modules that work out where something above their package lies."""
    return [path.name for path in folder.rglob("*.py") if ".parents[" in path.read_text()]


def test_one_module_alone_knows_where_the_repository_lies(tmp_path) -> None:
    assert climbing(ROOT / "src") == ["home.py"]
    (tmp_path / "other.py").write_text("_HERE = Path(__file__).parents[3]\n")
    assert climbing(tmp_path) == ["other.py"]


def test_the_nearest_home_upwards_is_found(marked):
    assert home() == marked
    (marked / "deep" / MARKER).touch()
    assert home() == marked / "deep"


def test_a_checkout_below_a_home_is_a_home_of_its_own(marked):
    (marked / "deep" / "engine").mkdir()
    (marked / "deep" / "engine" / "builds.toml").touch()
    assert home() == marked / "deep"
    assert layers(home() / "scenarios") == (marked / "deep" / "scenarios",)


def test_a_home_has_what_is_shipped_before_its_own(marked):
    assert layers(marked / "models") == (ROOT / "models", marked / "models")


def test_a_checkout_has_everything_itself():
    assert layers(ROOT / "models") == (ROOT / "models",)


def test_elsewhere_a_checkout_is_its_own_home(tmp_path, monkeypatch):
    monkeypatch.delenv(HOME_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    assert home() == home_or_shipped() == ROOT


def test_a_wheel_without_a_home_names_the_command_that_makes_one(wheel):
    with pytest.raises(BuildError, match=r"no home from .* upwards: .*; hybridwatch init DIR"):
        home()
    assert home_or_shipped() == wheel


def test_the_data_of_a_wheel_are_no_home(wheel, monkeypatch):
    monkeypatch.chdir(wheel / "engine")
    with pytest.raises(BuildError, match="no home from"):
        home()


def test_a_name_that_is_no_home_is_refused_for_readers_too(wheel, tmp_path, monkeypatch):
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    for find in (home, home_or_shipped):
        with pytest.raises(BuildError, match=r"HYBRIDWATCH_HOME: expected a folder with"):
            find()


def test_results_lie_in_the_home_and_in_a_checkout_right_here(marked, monkeypatch):
    assert default_results() == marked / "results"
    monkeypatch.chdir(marked)
    assert default_results() == Path("results")
    monkeypatch.chdir(ROOT)
    assert default_results() == Path("results")
