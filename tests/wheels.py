"""Wheels: of this checkout, of a few files, and an index by commit as vLLM publishes its own."""

import hashlib
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from tests.live_server import LiveServer, QuietHandler
from tests.live_server import serving as serve_live
from tests.shipped import ROOT

LAB = ROOT / "lab"


def build_wheel(folder: Path, source: Path = ROOT) -> Path:
    """Build it without a network, and without leaving anything in the checkout."""
    config = folder / "build.cfg"
    config.write_text(
        f"[build]\nbuild_base = {folder / 'build'}\n[egg_info]\negg_base = {folder}\n"
    )
    options = ("--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", str(folder))
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, str(source)],
        env={**os.environ, "DIST_EXTRA_CONFIG": str(config)},
        check=True,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def install_wheel(environment: Path, *wheels: Path) -> Path:
    """Install them in a new environment, which shares our packages but not our checkout.

    A line of a ``.pth`` file adds a folder and does not read the ``.pth`` files in it, so the
    editable installation that the tests run from stays out.
    """
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    options = ("--no-deps", "--no-index", "--quiet")
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), "install", *options, *wheels],
        check=True,
    )
    share_packages(environment, Path(sysconfig.get_path("purelib")))
    return environment / "bin" / "hybridwatch"


def share_packages(environment: Path, site: Path) -> None:
    """Have an environment see the packages of another one behind its own."""
    (own,) = (environment / "lib").glob("python3*/site-packages")
    (own / "shared.pth").write_text(f"{site}\n")


@dataclass
class WheelIndex:
    """What is served."""

    base: str = ""
    files: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)

    @property
    def template(self) -> str:
        """The address with a place for the commit."""
        return f"{self.base}/{{commit}}"

    def add(self, commit: str, *wheels: Path, digests: bool = True) -> None:
        """Publish the wheels of a commit; their page links to the folder above it."""
        lines = []
        for wheel in wheels:
            content = wheel.read_bytes()
            self.files[f"/{commit}/{quote(wheel.name)}"] = 200, content
            digest = f"#sha256={hashlib.sha256(content).hexdigest()}" if digests else ""
            lines.append(f'<a href="../{quote(wheel.name)}{digest}">{wheel.name}</a><br/>')
        page = f"<!DOCTYPE html><html><body>{''.join(lines)}</body></html>"
        self.files[f"/{commit}/vllm/"] = 200, page.encode()


@contextmanager
def serving() -> Iterator[WheelIndex]:
    """Serve an index that is empty at first."""
    index = WheelIndex()

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            status, content = index.files.get(self.path, (404, b"not found"))
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                half = self.path in index.cut
                self.wfile.write(content[: len(content) // 2] if half else content)

        def do_HEAD(self) -> None:
            self.do_GET()

    with serve_live(LiveServer(Handler)) as server:
        index.base = server.url
        yield index


def hashed(lock: str, folder: Path) -> str:
    """Add to the lines of a lock the hashes of the wheels in a folder."""
    lines = []
    for line in lock.splitlines():
        name, _, version = line.partition(",")[0].partition("==")
        wheels = folder.glob(f"{name.replace('-', '_')}-{version}-*.whl")
        digests = sorted(hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels)
        lines.append(" \\\n    ".join([line, *(f"--hash=sha256:{one}" for one in digests)]))
    return "\n".join(lines) + "\n"


def a_wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    files: Mapping[str, str | bytes] | None = None,
    requires: Sequence[str] = (),
) -> Path:
    """Make a wheel; without files it has a module of its name."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    lines = [f"Requires-Dist: {one}" for one in requires]
    members: dict[str, str | bytes] = {
        **({f"{name}.py": f"VERSION = {version!r}\n"} if files is None else files),
        f"{info}/METADATA": "\n".join(
            ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *lines, ""]
        ),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
    }
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for member, content in members.items():
            wheel.writestr(member, content)
        record = "".join(f"{member},,\n" for member in [*members, f"{info}/RECORD"])
        wheel.writestr(f"{info}/RECORD", record)
    return path
