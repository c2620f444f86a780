"""How much memory a process that starts now can get: of the machine, and of its control group."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

_ROOT: Final = Path("/sys/fs/cgroup")
_OWN: Final = Path("/proc/self/cgroup")
_FILES: Final = {
    2: ("memory.max", "memory.current", "inactive_file"),
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
"""Version of control groups to the files of the limit and of the use, and to what of the use the
kernel gives back when somebody needs it."""


@dataclass(frozen=True, slots=True)
class FreeMemory:
    """The tightest bound."""

    bytes: int
    where: str


def free_memory(own: Path = _OWN, root: Path = _ROOT) -> FreeMemory:
    """Find the bound that a new process meets first.

    A group's parents bound it, too. In a container the group is often mounted as if it were the
    root, so the root is looked at as well.

    Args:
        own: File that names the groups of this process.
        root: Where control groups are mounted.
    """
    bounds = [FreeMemory(psutil.virtual_memory().available, "of the machine")]
    for version, folder in _folders(own, root):
        limit, used, given_back = _FILES[version]
        try:
            most = (folder / limit).read_text(encoding="ascii").strip()
            if most != "max":
                now = int((folder / used).read_text(encoding="ascii"))
                free = max(0, int(most) - now + _of_statistics(folder, given_back))
                bounds.append(FreeMemory(free, f"within the limit {folder / limit}"))
        except (OSError, ValueError):
            continue  # no such group, or one that bounds no memory
    return min(bounds, key=lambda bound: bound.bytes)


def _folders(own: Path, root: Path) -> Iterator[tuple[int, Path]]:
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if kinds and "memory" not in kinds.split(","):
            continue
        top = root / "memory" if kinds else root
        group = top / path.lstrip("/")
        for folder in (group, *group.parents):
            yield (1 if kinds else 2), folder
            if folder == top:
                break


def _of_statistics(folder: Path, name: str) -> int:
    for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return 0
