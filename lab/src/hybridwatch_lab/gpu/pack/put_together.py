"""Puts the pieces of a pack together and makes an environment of them, without a network.

Needs nothing but Python itself: it travels with the pieces. It may be run after each delivery:
pieces that are here are checked and kept, the missing ones are named, and the environment is made
when all are there. Nothing is written but into the folder of ``--into``, which lies outside every
checkout.

Exit status: 0 the environment is there, 1 pieces are missing or damaged or something cannot be
imported, 2 the call was wrong.
"""

import argparse
import bisect
import compileall
import configparser
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
MANIFEST: Final = "pack.json"
MADE: Final = "pack-made.json"
_BLOCK: Final = 1 << 20
_CHECKOUT_MARKS: Final = (".git", "engine/builds.toml")

_COMMAND: Final = """\
#!{python}
import sys
from {module} import {function}
if __name__ == "__main__":
    sys.exit({call}())
"""

_CHECK: Final = """\
import importlib, json, sys
from importlib.util import find_spec
from importlib.metadata import PackageNotFoundError, version
lacks = []
for name, expected in json.loads(sys.argv[1]).items():
    try:
        found = version(name)
    except PackageNotFoundError:
        lacks.append(f"{name} {expected}".rstrip() + ": not there")
    else:
        if expected and found.partition("+")[0] != expected.partition("+")[0]:
            lacks.append(f"{name}: found {found}, the pack was made for {expected}")
import torch
modules, kernels = json.loads(sys.argv[2])
# Without a driver the kernels cannot be loaded, and are not to blame.
for module in modules + (kernels if torch.cuda.device_count() else []):
    try:
        if module in modules or find_spec(module):
            importlib.import_module(module)
    except Exception as error:
        lacks.append(f"import {module}: {type(error).__name__}: {error}")
for line in lacks:
    print(f"lacks {line}")
if lacks:
    sys.exit(1)
import vllm
print(f"Python {sys.version.split()[0]}, torch {torch.__version__}, vLLM {vllm.__version__}, "
      f"{torch.cuda.device_count()} GPU(s)")
"""
_MODULES: Final = ("vllm", "vllm.v1.engine.async_llm", "vllm.entrypoints.openai.api_server")
"""What an engine's server imports before it looks for a GPU."""
_KERNELS: Final = (
    *("vllm._C", "vllm._moe_C"),
    *("vllm._C_stable_libtorch", "vllm._moe_C_stable_libtorch"),
)
"""The first two up to 0.23.0, the others alone from 0.24.0 on."""


class PackError(Exception):
    """Something a person can act on, in a line or several."""

    status = 1


class CallError(PackError):
    """The call was wrong, or this machine is not the one that the pack is for."""

    status = 2


class Joined(io.RawIOBase):
    """Several files, read as one."""

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__()
        self._files = [path.open("rb") for path in paths]
        self._starts: list[int] = []
        self._size = 0
        for path in paths:
            self._starts.append(self._size)
            self._size += path.stat().st_size
        self._at = 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to a place."""
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        """Say where we are."""
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        """Read what the piece at this place still has, at most."""
        if self._at >= self._size:
            return 0
        index = bisect.bisect_right(self._starts, self._at) - 1
        file = self._files[index]
        file.seek(self._at - self._starts[index])
        block = file.read(len(buffer))
        buffer[: len(block)] = block
        self._at += len(block)
        return len(block)

    def close(self) -> None:
        """Close them all."""
        for file in self._files:
            file.close()
        super().close()


def main(words: Sequence[str] | None = None) -> int:
    """Do what the command line says; gives the exit status."""
    options = _options(words)
    try:
        return _run(options)
    except PackError as error:
        for line in str(error).splitlines():
            sys.stderr.write(f"put_together: {line}\n")
        return error.status


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="put-together.sh",
        description="Check the pieces of a pack, and make an environment of them when all are "
        "there. No network is used, and no package index.",
        epilog="Example: bash carry/put-together.sh --into /tmp/gpu --checkout .",
    )
    parser.add_argument(
        "--into",
        type=Path,
        required=True,
        help="folder for pieces and environments of any number of packs, outside every checkout",
    )
    parser.add_argument(
        "--checkout",
        type=Path,
        help="checkout of hybridwatch whose harness and plugin the environment shall run",
    )
    parser.add_argument(
        "--no-check", action="store_true", help="do not import vLLM when everything is there"
    )
    return parser.parse_args(words)


def _run(options: argparse.Namespace) -> int:
    manifest = _manifest()
    _require_python(manifest)
    into = options.into.expanduser().resolve()
    _require_outside(into)
    folder = into / manifest["build"]
    pieces = _keep_pieces(manifest, folder / "pieces")
    environment = folder / "env"
    made = environment / MADE
    if made.is_file() and made.read_text(encoding="utf-8").strip() == manifest["sha256"]:
        _say(f"the environment is there: {environment}")
    else:
        _make(manifest, pieces, environment)
    if options.checkout is not None:
        _show_checkout(environment, options.checkout.expanduser().resolve())
    _say(f"Python of the environment: {environment / 'bin' / 'python'}")
    return 0 if options.no_check else _check(manifest, environment)


def _manifest() -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads((HERE / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CallError(f"{HERE / MANIFEST}: expected the list of pieces: {error}") from error
    return manifest


def _require_python(manifest: Mapping[str, Any]) -> None:
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if here != manifest["python"]:
        raise CallError(
            f"the pack is for Python {manifest['python']}, {sys.executable} is {here}: "
            "name another one, PYTHON=... put-together.sh, or make the pack with --python"
        )


def _require_outside(into: Path) -> None:
    for folder in (into, *into.parents):
        for mark in _CHECKOUT_MARKS:
            if (folder / mark).exists():
                raise CallError(
                    f"--into: expected a folder outside every checkout, {into} is in {folder}"
                )


def _keep_pieces(manifest: Mapping[str, Any], folder: Path) -> list[Path]:
    """Take over the sound pieces that lie beside this script; all must be there in the end."""
    folder.mkdir(parents=True, exist_ok=True)
    missing: list[str] = []
    damaged: list[str] = []
    kept: list[Path] = []
    for piece in manifest["pieces"]:
        path, delivered = folder / piece["name"], HERE / piece["name"]
        if not _is_sound(path, piece):
            path.unlink(missing_ok=True)
            if _is_sound(delivered, piece):
                half = path.with_suffix(path.suffix + ".half")
                shutil.copyfile(delivered, half)
                half.replace(path)
            else:
                (damaged if delivered.exists() else missing).append(piece["name"])
                continue
        kept.append(path)
    lines = [f"{name}: damaged, its SHA-256 is not that of {MANIFEST}" for name in damaged]
    if missing:
        lines.append(f"still missing: {', '.join(missing)}")
    if lines:
        count = f"{len(kept)} of {len(manifest['pieces'])} pieces are kept in {folder}"
        raise PackError("\n".join([count, *lines]))
    return kept


def _is_sound(path: Path, piece: Mapping[str, Any]) -> bool:
    if not path.is_file() or path.stat().st_size != piece["size"]:
        return False
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest() == str(piece["sha256"])


def _make(manifest: Mapping[str, Any], pieces: Sequence[Path], environment: Path) -> None:
    if environment.exists():
        shutil.rmtree(environment)
    command = (sys.executable, "-I", "-m", "venv", "--without-pip", "--system-site-packages")
    subprocess.run([*command, str(environment)], check=True)
    site = _site(environment)
    with Joined(pieces) as joined, zipfile.ZipFile(io.BufferedReader(joined, _BLOCK)) as archive:
        for info in archive.infolist():
            _unpack(archive, info, site, environment)
    _show_machine(site)
    _write_commands(site, environment)
    # Where nothing may write such files (PYTHONDONTWRITEBYTECODE), an engine compiles all that it
    # imports at each start: 59 s on an H200's machine.
    compileall.compile_dir(site, quiet=2, workers=0)
    # Last, so that an environment that was interrupted is made again.
    (environment / MADE).write_text(manifest["sha256"] + "\n", encoding="utf-8")
    _say(f"the environment is made: {environment}, {len(manifest['packages'])} packages")


def _site(environment: Path) -> Path:
    (site,) = (environment / "lib").glob("python3*/site-packages")
    return site


def _unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo, site: Path, environment: Path) -> None:
    where, _, rest = info.filename.partition("/")
    root = site if where == "site" else environment
    path = root / rest
    if not path.resolve().is_relative_to(environment.resolve()):
        raise PackError(f"{info.filename}: leads out of the environment")
    path.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(info) as source, path.open("wb") as sink:
        shutil.copyfileobj(source, sink, _BLOCK)
    if where != "site" and rest.startswith("bin/"):
        _shebang(path, environment)
        path.chmod(0o755)


def _shebang(path: Path, environment: Path) -> None:
    """Have a wheel's script start the environment's Python, as an installer does."""
    text = path.read_bytes()
    first, newline, rest = text.partition(b"\n")
    if re.fullmatch(rb"#!.*python[w]?\r?", first):
        path.write_bytes(b"#!" + os.fsencode(environment / "bin" / "python") + newline + rest)


def _show_machine(site: Path) -> None:
    """Let the environment see what this very Python sees, be it itself a virtual environment."""
    names = ("site-packages", "dist-packages")
    seen = [path for path in sys.path if Path(path).name in names and Path(path).is_dir()]
    lines = [f"import site; site.addsitedir({path!r})" for path in dict.fromkeys(seen)]
    # Sorted last of all .pth: whatever was packed goes before what the machine has.
    (site / "zz-machine.pth").write_text("\n".join([*lines, ""]), encoding="utf-8")


def _write_commands(site: Path, environment: Path) -> None:
    for info in sorted(site.glob("*.dist-info/entry_points.txt")):
        parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
        parser.optionxform = str  # type: ignore[assignment,method-assign]
        parser.read_string(info.read_text(encoding="utf-8"))
        if parser.has_section("console_scripts"):
            for name, target in parser.items("console_scripts"):
                _write_command(environment, name, target)


def _write_command(environment: Path, name: str, target: str) -> None:
    module, _, call = target.partition("[")[0].strip().partition(":")
    text = _COMMAND.format(
        python=environment / "bin" / "python",
        module=module,
        function=call.partition(".")[0],
        call=call,
    )
    path = environment / "bin" / name
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def _show_checkout(environment: Path, checkout: Path) -> None:
    """Have the environment run harness and plugin from a checkout, in which nothing is written.

    The lab, which has the campaign, is one of them where the checkout has it.
    """
    site = _site(environment)
    parts = [checkout, checkout / "engine", checkout / "lab"]
    (site / "hybridwatch-checkout.pth").write_text(
        "\n".join([*(str(part / "src") for part in parts), ""]), encoding="utf-8"
    )
    for file in (part / "pyproject.toml" for part in parts if part.is_dir()):
        try:
            project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
            raise CallError(f"{file}: expected a checkout of hybridwatch: {error}") from error
        _write_metadata(site, environment, project)
    _say(f"harness and plugin run from {checkout}")


def _write_metadata(site: Path, environment: Path, project: Mapping[str, Any]) -> None:
    """Write what ``importlib.metadata`` looks for: the version, and the plugin's entry point."""
    name, version = project["name"], project["version"]
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(exist_ok=True)
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    groups = {"console_scripts": project.get("scripts", {}), **project.get("entry-points", {})}
    lines = [
        line
        for group, entries in groups.items()
        for line in (f"[{group}]", *(f"{key} = {target}" for key, target in entries.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")
    for key, target in project.get("scripts", {}).items():
        _write_command(environment, key, target)


def _check(manifest: Mapping[str, Any], environment: Path) -> int:
    python = str(environment / "bin" / "python")
    words = (json.dumps(manifest["counted_on"]), json.dumps((_MODULES, _KERNELS)))
    variables = {**os.environ, **manifest["env"], "VLLM_NO_USAGE_STATS": "1"}
    done = subprocess.run([python, "-P", "-c", _CHECK, *words], env=variables, check=False)
    return 1 if done.returncode else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
