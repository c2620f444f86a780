"""An environment in a folder with white space in its name, started by a name that has none."""

import subprocess
import sys
from pathlib import Path

import pytest

from hybridwatch.engines.builds import BuildSpec, named_build
from hybridwatch.engines.other_python import make_stand_in, unspaced_interpreter
from hybridwatch.errors import BuildError
from tests.checkout import make_checkout

WHERE = "import sys; print(sys.prefix)"


@pytest.fixture
def build(tmp_path) -> BuildSpec:
    """A build in such a folder, of an environment without packages."""
    home = tmp_path / "my checkout"
    make_checkout(home)
    build = named_build("tiny-1.0", home)
    venv = [sys.executable, "-m", "venv", "--without-pip", str(build.environment)]
    subprocess.run(venv, check=True)
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
