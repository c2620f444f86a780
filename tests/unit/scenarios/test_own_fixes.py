"""Fixes of the user's own: from the home, and from a package by its entry point."""

import dataclasses
import json
import sys
from types import SimpleNamespace

import pytest
from hybridwatch_engine.fixes import headers
from hybridwatch_engine.fixes.headers import own_headers
from hybridwatch_engine.fixes.registry import Switchboard
from hybridwatch_engine.fixes.registry import own_fixes as loaded_fixes
from hybridwatch_engine.source import SourceTree

from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.launch import own_settings
from hybridwatch.errors import BuildError, MeasurementError, ScenarioError
from hybridwatch.measurement.phase import require_occasion
from hybridwatch.scenarios.fixes import (
    CATALOGUE,
    OWN_DEFAULTS,
    catalogue,
    list_parts,
    own_fixes,
    start_fixes,
)
from hybridwatch.scenarios.load import load_scenario
from tests.checkout import FIX, write_own_fix

CODE = """\
class BaseMambaAttentionMetadataBuilder:
    def _compute_common_metadata(self):
        {body}
"""


@pytest.fixture
def file(own_home):
    """The table of a fix in the home."""
    return write_own_fix(own_home / "fixes")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The same fix in a package, installed here: a folder and its metadata."""
    site = tmp_path / "site"
    site.mkdir()
    write_own_fix(site / "my_fixes")
    (site / "my_fixes" / "__init__.py").touch()
    about = site / "my_fixes-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-fixes\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[hybridwatch.fixes]\nmine = my_fixes\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, "my_fixes", raising=False)
    return site / "my_fixes"


@pytest.fixture
def engine(monkeypatch):
    """Give a process what an engine's has in its environment; called when files are written."""

    def begin():
        monkeypatch.setenv("HYBRIDWATCH_ENGINE", json.dumps(own_settings()))
        own_headers.cache_clear()

    yield begin
    own_headers.cache_clear()


def a_tree(folder, body):
    path = folder / "vllm" / "v1" / "attention" / "backends" / "mamba_attn.py"
    path.parent.mkdir(parents=True)
    path.write_text(CODE.format(body=body))
    return SourceTree(folder / "vllm")


def test_those_of_the_home_stand_behind_what_is_shipped(file):
    assert list(catalogue()) == [*CATALOGUE, FIX]
    assert own_fixes()[FIX].releases == {}


def test_a_package_names_its_own_by_an_entry_point(package):
    assert list(own_fixes()) == [FIX]


def test_a_label_switches_it_behind_what_is_shipped(file):
    request = parse_label(f"cpu-0.27.1~{FIX}+slow-step~padded-rows-prefilling")
    assert request.label == f"cpu-0.27.1~padded-rows-prefilling~{FIX}+slow-step"
    assert request.switches == {"padded-rows-prefilling": False, FIX: False}
    assert request.planted == ("slow-step",)


def test_a_whole_is_switched_by_its_parts(file):
    text = file.read_text()
    whole = text.replace(FIX, "whole").replace('ways = ["revert"]', f'parts = ["{FIX}"]')
    file.write_text(text + whole)
    assert list_parts("whole") == (FIX,)
    assert parse_label("cpu-0.27.1~whole").switches == {FIX: False}


def test_one_that_is_switched_at_the_start_needs_an_engine_of_its_own(file):
    assert FIX not in start_fixes()
    file.write_text(file.read_text().replace('"live"', '"start"'))
    assert FIX in start_fixes()


def test_a_scenario_and_a_build_may_name_it(file, own_home):
    scenario = own_home / "scenarios" / "mine" / "second.toml"
    scenario.write_text(f'like = "smoke/dummy-run"\nversion = 1\nfix = "{FIX}"\n')
    assert load_scenario(scenario, own_home / "scenarios").fix == FIX
    builds = own_home / "builds.toml"
    builds.write_text(f'[builds."without"]\nlike = "cpu-0.27.1"\nfixes = {{ {FIX} = "revert" }}\n')
    assert parse_label("without").switches == {FIX: False}


def test_a_scenario_that_names_none_that_is_known_gets_the_list(file, own_home):
    scenario = own_home / "scenarios" / "mine" / "second.toml"
    scenario.write_text('like = "smoke/dummy-run"\nversion = 1\nfix = "empty-state"\n')
    with pytest.raises(ScenarioError, match=f'fix: expected one of .*"none", "{FIX}", found'):
        load_scenario(scenario, own_home / "scenarios")


def test_a_trial_without_its_occasion_proves_nothing(file):
    require_occasion(FIX, {"replays": 1}, {})
    with pytest.raises(MeasurementError, match=f"no occasion to break what {FIX} mends"):
        require_occasion(FIX, {"replays": 0}, {})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (FIX, "dummy-run-padding", r"mine.toml: fix.dummy-run-padding: .* engine/fixes.toml has$"),
        ("ways", "wais", r"mine.toml: fix.empty-new-state.wais: unknown key; did you mean"),
        ("how =", "parts = ['x']\nhow =", r"fix.empty-new-state.parts: expected fixes of this"),
        ("[fix", "fix", r"mine.toml: not TOML"),
        ("fix.", "fixes.", r"mine.toml: fix: missing"),
    ],
)
def test_a_wrong_table_is_refused_with_file_and_key(file, old, new, message):
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(ScenarioError, match=message):
        catalogue()


def test_two_files_with_one_id_are_both_named(file, package):
    with pytest.raises(ScenarioError, match=rf"my_fixes/mine.toml: .* {file} has$"):
        catalogue()


def test_the_name_of_a_planted_fault_is_taken(file):
    file.write_text(file.read_text().replace(FIX, "slow-step"))
    with pytest.raises(BuildError, match=r"fix.slow-step: .* of a planted fault"):
        parse_label("cpu-0.27.1+other")


def test_harness_and_plugin_leave_the_same_unsaid(file, engine):
    assert headers.OWN_DEFAULTS == OWN_DEFAULTS
    engine()
    theirs = dataclasses.asdict(loaded_fixes()[FIX].header)
    assert theirs.pop("id") == FIX
    assert theirs == own_fixes()[FIX].model_dump()


@pytest.mark.parametrize(
    ("body", "state"),
    [("return Metadata(has_initial_states_p=None)", "present"), ("return None", "lacking")],
)
def test_the_plugin_probes_code_by_it(file, engine, tmp_path, body, state):
    engine()
    assert loaded_fixes()[FIX].probe(a_tree(tmp_path, body)).state == state


def test_the_plugin_takes_it_out_and_puts_it_back(file, engine, tmp_path, monkeypatch):
    engine()

    @dataclasses.dataclass
    class Metadata:
        has_initial_states_p: object

    class Builder:
        def _compute_common_metadata(self):
            return Metadata(flags)

    flags = SimpleNamespace(shape=1, new_ones=lambda _shape: "all")
    module = SimpleNamespace(BaseMambaAttentionMetadataBuilder=Builder)
    for name in ("vllm", "vllm.v1", "vllm.v1.attention", "vllm.v1.attention.backends"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace())
    monkeypatch.setitem(sys.modules, "vllm.v1.attention.backends.mamba_attn", module)
    tree = a_tree(tmp_path, "return Metadata(has_initial_states_p=None)")
    board = Switchboard(tree, loaded_fixes())
    assert board.states() == {FIX: "present"}
    assert board.switch(FIX, wanted=False) == "reverted"
    assert Builder()._compute_common_metadata().has_initial_states_p == "all"
    assert board.switch(FIX, wanted=True) == "present"
    assert Builder()._compute_common_metadata().has_initial_states_p is flags
    with pytest.raises(ValueError, match=f"fix {FIX} cannot be put into"):
        Switchboard(a_tree(tmp_path / "other", "return None"), loaded_fixes()).switch(FIX, True)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("from dataclasses", "from no_such_module", r"module: empty_new_state.py cannot be loaded"),
        ("FIX =", "FIX = None and", r"expected a Fix of this id in empty_new_state.py, found none"),
        (
            ", revert=revert",
            "",
            r"ways: expected \[\] as in empty_new_state.py, found \['revert'\]",
        ),
    ],
)
def test_code_that_is_wrong_is_refused_with_file_and_key(file, engine, old, new, message):
    module = file.with_name("empty_new_state.py")
    module.write_text(module.read_text().replace(old, new))
    engine()
    with pytest.raises(ValueError, match=rf"^{file}: fix.{FIX}.*{message}"):
        loaded_fixes()


def test_a_fix_without_its_module_is_refused(file, engine):
    file.with_name("empty_new_state.py").unlink()
    engine()
    with pytest.raises(ValueError, match=r"module: expected a file empty_new_state.py in "):
        loaded_fixes()
