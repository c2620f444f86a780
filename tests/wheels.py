"""Wheels of a few files, made where a test wants them."""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path


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
