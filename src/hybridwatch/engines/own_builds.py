"""Adds builds of the user's own to this machine's file: a patched tree, a wheel, an environment."""

import shutil
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from packaging.version import InvalidVersion, Version

from hybridwatch.engines import pip
from hybridwatch.engines.builds import NAME, OWN_FILE, BuildSpec, load_builds, named_build
from hybridwatch.engines.builds_file import render_tables, written_tables
from hybridwatch.engines.check import require_readable
from hybridwatch.engines.code_tree import (
    CodeTree,
    code_tree,
    commit_tree,
    find_sha,
    lay_tree,
    unpack_wheel,
)
from hybridwatch.engines.install import InstallState, Say, mark_finished, state
from hybridwatch.engines.other_python import Installed, look_at, make_stand_in
from hybridwatch.engines.pip import find_wheel
from hybridwatch.errors import BuildError
from hybridwatch.system.files import claimed, put
from hybridwatch.system.home import shipped_engine

_OVERLAY: Final = "overlay"
_PLUGIN: Final = "plugin"


def add_source(home: Path, name: str, folder: Path, base: str = "", commit: str = "") -> BuildSpec:
    """Add a checkout's or package's Python code over the compiled parts of the nearest release.

    Without ``commit`` of its repository the files count as they are there. ``base`` is an installed
    build to lay the code over, if not the nearest. It replaces a build of this name. Where compiled
    parts or packages do not fit, the error has the files that say so.
    """
    _check_name(home, name)
    origin = {"source": str(folder.resolve())}
    if not commit:
        return _add_tree(home, name, code_tree(folder.resolve()), base, origin)
    with commit_tree(folder, commit) as laid_out:
        origin["commit"] = find_sha(folder, commit)
        return _add_tree(home, name, code_tree(laid_out), base, origin)


def remove_build(home: Path, name: str) -> None:
    """Remove a build of one's own, entry and code; without one there is nothing to do."""
    file = home / OWN_FILE
    with _claimed(file):
        entries = written_tables(file)
        if entries.pop(name, None) is None:
            return
        _write(file, entries)
    shutil.rmtree(home / ".engines" / name, ignore_errors=True)


def _add_tree(
    home: Path, name: str, tree: CodeTree, base: str, origin: Mapping[str, str]
) -> BuildSpec:
    below = _base(home, base, lambda builds: _nearest(tree, builds))
    found = look_at(below.interpreter)
    if tree.checkout and not tree.has_release(below.release):
        raise BuildError(
            f"{tree.checkout}: expected the tag v{below.release}, found none; "
            "run there: git fetch --tags"
        )
    if changed := tree.native_changes(below.release, below.accelerator, found.package):
        lines = "\n".join(f"  {path}" for path in changed)
        place = " at ".join(origin[key] for key in ("source", "commit") if key in origin)
        raise BuildError(
            f"{place}: refused, as the compiled parts and packages of {below.name} "
            f"do not fit it; differing:\n{lines}\nbuild it yourself, and add its environment with "
            "--python"
        )

    def lay(into: Path) -> None:
        lay_tree(tree, below.release, found, below.interpreter, into)

    return _over(below, name, {"origin": dict(origin)}, lay)


def add_wheel(home: Path, name: str, wheel: Path, base: str = "") -> BuildSpec:
    """Add a wheel of vLLM, with the packages of a release, as ``add_source`` adds a folder."""
    _check_name(home, name)
    wanted = wheel.name.split("-")[1] if wheel.name.count("-") > 1 else ""
    below = _base(home, base, lambda builds: _not_newer(builds, wanted))
    return _over_wheel(below, name, wheel, {"wheel": str(wheel.resolve())})


def add_release(
    home: Path, name: str, release: str, base: str = "", *, say: Say = lambda _: None
) -> BuildSpec:
    """Add a version, or the wheel at an address, with the packages of an installed release."""
    _check_name(home, name)
    address = "/" in release
    below = _base(home, base, lambda builds: _not_newer(builds, "" if address else release))
    folder = home / ".engines" / f"{name}.wheel"
    shutil.rmtree(folder, ignore_errors=True)
    what = release if address else f"{below.distribution}=={release}"
    computes = "a CPU" if below.accelerator == "cpu" else "a GPU"
    say(
        f"looking for {what}, to be laid over {below.name}, which has {below.distribution}, for "
        f"{computes}; --base names another installed build"
    )
    return add_wheel(home, name, pip.wheel(what, folder), below.name)


def add_commit(home: Path, name: str, commit: str, base: str = "", *, index: str = "") -> BuildSpec:
    """Add the wheel that an index has of a commit (40 digits), for the accelerator of ``base``."""
    _check_name(home, name)
    newest = _base(home, base, lambda builds: _not_newer(builds, ""))
    found = find_wheel(commit, newest.accelerator, index)

    def older(builds: Sequence[BuildSpec]) -> list[BuildSpec]:
        alike = [one for one in builds if one.accelerator == newest.accelerator]
        return _not_newer(alike, found.release)

    below = _base(home, base, older)
    origin = {"commit": commit, **({"index": index} if index else {})}
    with tempfile.TemporaryDirectory() as folder:
        return _over_wheel(below, name, pip.wheel(found.address, Path(folder)), origin, commit)


def add_python(home: Path, name: str, python: Path, base: str = "") -> BuildSpec:
    """Add an environment that is there already; nothing is written into it.

    It gets variables and flags of ``base``, or else of the newest fitting build that is no newer.
    """
    _check_name(home, name)
    found = look_at(python.absolute())  # Python follows a link, and looks next to it
    like = _like(home, base, found)
    folder = home / ".engines" / name
    lock = folder.with_name(f"{name}.lock.txt")
    plugin = shipped_engine(home)
    source = None if found.has_plugin else plugin / "src"
    require_readable(name, python.absolute(), found.package.parent, source)
    packages = () if source is None else (folder / _PLUGIN, source)
    make_stand_in(folder, python.absolute(), packages)
    if packages:
        _pretend_installed(folder / _PLUGIN, plugin)
    lock.write_text("".join(f"{line}\n" for line in found.held), encoding="utf-8")
    entry = {
        "like": like.name,
        "release": found.release,
        "distribution": found.distribution,
        "lock": f"../.engines/{lock.name}",
        "origin": {"python": str(python.absolute())},
    }
    return _enter(home, name, entry)


def _check_name(home: Path, name: str) -> None:
    if not NAME.fullmatch(name):
        raise BuildError(f"{name!r}: expected lower-case letters, digits, dots and hyphens as name")
    known = load_builds(home)
    if name in known and not known[name].origin:
        raise BuildError(f"{name} is a build that was there before; name yours otherwise")


def _over_wheel(
    below: BuildSpec, name: str, wheel: Path, origin: Mapping[str, str], revision: str = ""
) -> BuildSpec:
    found = look_at(below.interpreter)
    entry: dict[str, Any] = {"origin": origin}

    def lay(into: Path) -> None:
        brought = unpack_wheel(wheel, found, into, revision)
        entry.update(release=brought.release, distribution=brought.distribution)

    return _over(below, name, entry, lay)


def _over(
    below: BuildSpec, name: str, entry: dict[str, Any], lay: Callable[[Path], None]
) -> BuildSpec:
    folder = below.home / ".engines" / name
    fresh = folder.with_name(f"{name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        fresh.mkdir(parents=True)
        lay(fresh)
        require_readable(name, below.interpreter, fresh)
        # Whatever is refused is refused before the build that was there is touched.
        make_stand_in(folder, below.interpreter, (folder / _OVERLAY,))
        fresh.rename(folder / _OVERLAY)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return _enter(below.home, name, {"like": below.name, "base": below.name, **entry})


def _enter(home: Path, name: str, entry: Mapping[str, Any]) -> BuildSpec:
    file = home / OWN_FILE
    with _claimed(file):
        _write(file, {**written_tables(file), name: entry})
    build = named_build(name, home)
    mark_finished(build)
    return build


@contextmanager
def _claimed(file: Path) -> Iterator[None]:
    """Let no other process change the file between our reading and our writing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    # Without a limit: who has the claim writes a small file, and loses it when it ends.
    with claimed(file.with_suffix(".lock"), wait=True):
        yield


def _write(file: Path, entries: Mapping[str, Mapping[str, Any]]) -> None:
    if not entries:
        file.unlink(missing_ok=True)
        return
    put(file, render_tables(entries).encode())


def _base(
    home: Path, named: str, choose: Callable[[Sequence[BuildSpec]], list[BuildSpec]]
) -> BuildSpec:
    if named:
        build = named_build(named, home)
        if build.origin or build.variant_of:
            raise BuildError(f"--base {named}: expected a build of a release")
        if state(build) is not InstallState.INSTALLED:
            raise BuildError(f"{named} is {state(build).value}; run: {build.made_by}")
        return build
    whole = [one for one in load_builds(home).values() if not (one.origin or one.variant_of)]
    installed = [one for one in whole if state(one) is InstallState.INSTALLED]
    found = choose(installed)
    if len(found) != 1:
        known = ", ".join(one.name for one in found or installed) or "none"
        raise BuildError(
            "expected one installed release to lay the code over, found "
            f"{len(found)}; --base names one (installed: {known})"
        )
    return found[0]


def _nearest(tree: CodeTree, builds: Sequence[BuildSpec]) -> list[BuildSpec]:
    if tree.checkout is None:
        return [one for one in builds if one.release == tree.version]
    away = {one.name: tree.distance(one.release) for one in builds if tree.has_release(one.release)}
    return [one for one in builds if one.name in away and away[one.name] == min(away.values())]


def _not_newer(builds: Sequence[BuildSpec], release: str) -> list[BuildSpec]:
    """Find the newest builds that are no newer than a release; of any without one."""
    known = _version(release) if release else None
    older = [one for one in builds if known is None or _version(one.release) <= known]
    newest = max((_version(one.release) for one in older), default=None)
    return [one for one in older if _version(one.release) == newest]


def _like(home: Path, named: str, found: Installed) -> BuildSpec:
    """Find the build whose variables and flags fit an environment; it need not be installed."""
    if named:
        return named_build(named, home)
    known = [one for one in load_builds(home).values() if not (one.origin or one.variant_of)]
    alike = [one for one in known if one.distribution == found.distribution]
    near = _not_newer(alike, found.release)
    if not near:
        raise BuildError(
            f"no build of {found.distribution} is as old as {found.release}; --base names the one "
            "whose variables and flags its engine gets"
        )
    return near[0]


def _version(release: str) -> Version:
    try:
        return Version(Version(release).base_version)
    except InvalidVersion:
        return Version("0")


def _pretend_installed(folder: Path, engine: Path) -> None:
    project = tomllib.loads((engine / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = project["name"], project["version"]
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (info / "METADATA").write_text(about, encoding="utf-8")
    groups = (
        "\n".join([f"[{group}]", *(f"{key} = {value}" for key, value in points.items()), ""])
        for group, points in project["entry-points"].items()
    )
    (info / "entry_points.txt").write_text("\n".join(groups), encoding="utf-8")
