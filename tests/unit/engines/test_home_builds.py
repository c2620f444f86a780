"""Builds, models and right answers of a home, beside those that are shipped."""

import shutil
from pathlib import Path

import pytest

from hybridwatch.engines import install
from hybridwatch.engines.builds import load_builds, named_build
from hybridwatch.engines.fitting import find_checkpoint
from hybridwatch.engines.install import environment_digest, plugin_digest, plugin_to_install
from hybridwatch.errors import BuildError
from hybridwatch.measurement.accuracy.oracle import find_own_path, find_path
from hybridwatch.scenarios.load import find
from hybridwatch.system.shipped import shipped

VARIANT = """\
[builds."mine-unpadded"]
like = "cpu-0.27.1"
fixes = { padded-rows-prefilling = "revert" }
"""
LOCKED = '[builds."mine-locked"]\nlike = "cpu-0.27.1"\nlock = "mine.txt"\n'


def test_a_build_written_by_hand_may_be_like_one_that_is_shipped(own_home):
    (own_home / "builds.toml").write_text(VARIANT)
    build, model = named_build("mine-unpadded"), named_build("cpu-0.27.1")
    assert build.switches == {"padded-rows-prefilling": False}
    assert build.lock_file == model.lock_file == shipped() / "engine" / "locks" / "cpu-0.27.1.txt"
    assert build.environment == model.environment == own_home / ".engines" / "cpu-0.27.1"


def test_a_lock_lies_beside_the_file_that_names_it(own_home):
    (own_home / "builds.toml").write_text(LOCKED)
    with pytest.raises(BuildError, match=r'builds.toml: builds."mine-locked".lock: no file mine'):
        load_builds(own_home)
    (own_home / "mine.txt").write_text("six==1.17.0\n")
    assert named_build("mine-locked").lock_file == own_home / "mine.txt"


def test_a_name_that_is_taken_is_refused_with_both_files(own_home):
    (own_home / "builds.toml").write_text('[builds."cpu-0.28.0"]\nlike = "cpu-0.27.1"\n')
    with pytest.raises(BuildError) as caught:
        load_builds(own_home)
    assert str(caught.value) == (
        'builds.toml: builds."cpu-0.28.0": expected a name that is not taken yet, found one that '
        "engine/builds.toml has"
    )


def test_a_name_that_was_added_by_a_command_is_taken_too(own_home):
    (own_home / "builds.toml").write_text(VARIANT)
    (own_home / ".engines").mkdir()
    (own_home / ".engines" / "builds.toml").write_text(VARIANT)
    with pytest.raises(BuildError, match=r"^\.engines/builds.toml: .*found one that builds.toml"):
        load_builds(own_home)


@pytest.fixture
def scenario(own_home):
    file = own_home / "scenarios" / "mine" / "second.toml"
    file.write_text('like = "mine/first"\nmodel = "my-model"\n')
    (found,) = find(own_home / "scenarios", ["mine/second"])
    return found


def test_a_scenario_may_name_a_model_of_the_home(own_home, scenario):
    models, build = own_home / "models", named_build("cpu-0.27.1")
    with pytest.raises(BuildError, match=r"mine/second: model: expected a folder 'my-model' in"):
        find_checkpoint(scenario, build, models)
    (models / "my-model").mkdir()
    assert find_checkpoint(scenario, build, models).folder == models / "my-model"


def test_a_model_may_be_a_link(own_home, scenario, tmp_path):
    (tmp_path / "big").mkdir()
    (own_home / "models" / "my-model").symlink_to(tmp_path / "big")
    found = find_checkpoint(scenario, named_build("cpu-0.27.1"), own_home / "models")
    assert found.folder.resolve() == tmp_path / "big"


def test_a_model_that_is_called_as_a_shipped_one_is_refused(own_home):
    (own_home / "models" / "tiny-hybrid").mkdir()
    (first,) = find(own_home / "scenarios", ["mine/first"])
    with pytest.raises(BuildError, match=r"found .*/models/tiny-hybrid, which is shipped, and "):
        find_checkpoint(first, named_build("cpu-0.27.1"), own_home / "models")


def test_own_right_answers_come_before_those_that_are_shipped(own_home):
    scenario = "smoke/dummy-run"
    own = find_own_path(own_home, scenario)
    assert find_path(own_home, scenario) == shipped() / "oracles" / "smoke" / "dummy-run.json"
    assert find_path(own_home, "mine/first") == own_home / "oracles" / "mine" / "first.json"
    own.parent.mkdir(parents=True)
    own.touch()
    assert find_path(own_home, scenario) == own


@pytest.fixture
def from_a_wheel(own_home, tmp_path, monkeypatch):
    """What is shipped, as a wheel carries it."""
    data = tmp_path / "data"
    shutil.copytree(shipped() / "engine", data / "engine")
    for module in ("hybridwatch.system.home", "hybridwatch.engines.install"):
        monkeypatch.setattr(f"{module}.is_checkout", lambda: False)
    monkeypatch.setattr("hybridwatch.system.home.shipped", lambda: data)
    return data


def test_a_checkout_has_its_plugin_installed_where_it_lies(own_home):
    with plugin_to_install(own_home) as words:
        assert words == ("--editable", str(shipped() / "engine"))


def test_a_wheel_has_a_copy_of_its_plugin_installed(own_home, from_a_wheel):
    with plugin_to_install(own_home) as (folder,):
        assert not folder.startswith(str(from_a_wheel))
        assert plugin_digest(own_home) is not None
        assert "hybridwatch-engine" in (Path(folder) / "pyproject.toml").read_text()


def test_another_plugin_in_the_wheel_makes_an_environment_stale(own_home, from_a_wheel):
    before = environment_digest(named_build("cpu-0.27.1"))
    install._digest_of.cache_clear()
    source = from_a_wheel / "engine" / "src" / "hybridwatch_engine" / "plugin.py"
    source.write_text(source.read_text() + "# another one\n")
    assert environment_digest(named_build("cpu-0.27.1")) != before
