"""Faults of the user's own: from the home, and from a package by its entry point."""

import json
import sys

import pytest
from hybridwatch_engine.mutants.board import mutant_headers, patches_of
from hybridwatch_engine.mutants.tally import Tally
from hybridwatch_engine.planter import planter

from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.launch import own_settings
from hybridwatch.errors import BuildError, ScenarioError
from hybridwatch.scenarios.fixes import own_faults, own_folders
from hybridwatch_lab.mutants.table import catalogue, halves

TABLE = """\
[mutant.{name}]
mechanism = "sampler"
target = ["json:dumps"]
by = "{by}"
resembles = "made up"
what = "Answers something else."
"""
CODE = "def other(original, tally):\n    return lambda *_: tally.count(changed=True)\n"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with one fault, installed here: a folder of modules and its metadata."""
    site = tmp_path / "site"
    folder = site / "my_faults"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "faults.toml").write_text(TABLE.format(name="packed", by="code.other"))
    (folder / "code.py").write_text(CODE)
    about = site / "my_faults-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-faults\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[hybridwatch.mutants]\nmine = my_faults\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, "my_faults", raising=False)
    return folder


@pytest.fixture
def engine(monkeypatch):
    """What an engine's process is told of the folders that there are."""
    told = json.dumps(own_settings())
    monkeypatch.setenv("HYBRIDWATCH_ENGINE", told)
    for made in (mutant_headers, planter):
        made.cache_clear()
    yield
    monkeypatch.undo()
    for made in (mutant_headers, planter):
        made.cache_clear()


def test_those_of_the_home_and_of_a_package_are_mutants(own_home, package):
    assert own_folders("mutants") == (own_home / "mutants", package)
    assert list(halves(catalogue())["own"]) == ["slow-decay", "packed"]


def test_without_any_the_catalogue_has_two_halves(tmp_path, monkeypatch):
    monkeypatch.delenv("HYBRIDWATCH_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert own_faults() == {}
    assert list(halves(catalogue())) == ["first", "second"]


def test_a_label_plants_them_behind_what_is_shipped(own_home, package):
    request = parse_label("cpu-0.27.1+packed+slow-decay+slow-step~padded-rows-prefilling")
    assert request.label == "cpu-0.27.1~padded-rows-prefilling+slow-step+packed+slow-decay"
    assert request.planted == ("slow-step", "packed", "slow-decay")
    with pytest.raises(BuildError, match=r"no release has the fault packed"):
        parse_label("cpu-0.27.1~packed")


def test_what_the_scheduler_runs_is_no_fault_of_a_label(own_home, package):
    file = package / "faults.toml"
    file.write_text(file.read_text() + 'process = "scheduler"\n')
    assert "packed" in catalogue()
    with pytest.raises(BuildError, match=r'"packed" is no fix'):
        parse_label("cpu-0.27.1+packed")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("slow-decay", r"faults.toml: mutant.slow-decay: .*found one that .*mine.toml has"),
        ("decode-dt-bias", r"faults.toml: mutant.decode-dt-bias: .*mutants/first.toml has"),
    ],
)
def test_a_name_that_is_taken_is_refused_with_both_files(own_home, package, name, message):
    (package / "faults.toml").write_text(TABLE.format(name=name, by="code.other"))
    with pytest.raises(ScenarioError, match=message):
        catalogue()


def test_the_name_of_a_fix_is_taken(own_home, package):
    (package / "faults.toml").write_text(TABLE.format(name="dummy-run-padding", by="code.other"))
    with pytest.raises(BuildError, match=r"faults.toml: mutant.dummy-run-padding: .* of a fix"):
        parse_label("cpu-0.27.1+packed")


def test_the_halves_are_of_what_is_shipped(own_home, package):
    file = package / "faults.toml"
    file.write_text(file.read_text() + 'half = "first"\n')
    with pytest.raises(ScenarioError, match=r"mutant.packed.half: expected none, found first"):
        own_faults()


def test_an_entry_point_that_names_no_package_is_refused(own_home, package):
    (package / "faults.toml").unlink()
    points = package.parent / "my_faults-1.0.dist-info" / "entry_points.txt"
    points.write_text("[hybridwatch.mutants]\nmine = no_such_package\n")
    with pytest.raises(ScenarioError, match=r"entry point mine of .*: expected a package, found"):
        own_folders("mutants")


def test_the_plugin_loads_their_code_from_the_folder(own_home, package, engine, monkeypatch):
    header = mutant_headers()["packed"]
    assert (header.folder, header.half) == (package, "own")
    monkeypatch.setitem(sys.modules, "vllm.json", json)
    monkeypatch.setitem(sys.modules, "vllm", json)
    tally = Tally()
    patches = patches_of(header, tally)
    patches.install()
    try:
        assert json.dumps({}) is None
    finally:
        patches.remove()
    assert json.dumps({}) == "{}"
    assert (tally.reached, tally.changed) == (1, 1)


def test_the_plugin_plants_them_by_their_name(own_home, package, engine, monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm.json", json)
    monkeypatch.setitem(sys.modules, "vllm", json)
    planter().plant(["packed"])
    assert planter().planted == ["packed"]
    assert json.dumps({}) != "{}"
    planter().plant([])
    assert (planter().planted, json.dumps({})) == ([], "{}")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import no_such_module\n", r"faults.toml: mutant.packed.by: code.py cannot be loaded"),
        ("other = None\n", r"faults.toml: mutant.packed.by: expected module.function of "),
    ],
)
def test_code_that_cannot_be_loaded_is_refused_and_ends_no_engine(
    own_home, package, engine, code, message
):
    (package / "code.py").write_text(code)
    with pytest.raises(ValueError, match=message):
        planter().plant(["packed"])
