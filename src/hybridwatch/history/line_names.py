"""Names of the lines of a history, of their scenario's definitions, and the order of releases."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from packaging.version import InvalidVersion, Version

_NUMBER: Final = re.compile(r"\d+")
_ANY_RELEASE: Final = "*"
_NAMED: Final = 3
"""Settings by which a definition is named."""
_SHORT: Final = 8

Settings: TypeAlias = Mapping[str, Mapping[str, str]]
"""Settings of a scenario's definitions, by digest and name, where they are stored."""


def list_line_names(levels: pd.DataFrame, *, over_releases: bool) -> npt.NDArray[np.object_]:
    """Name the line that each level or run belongs to; needs ``line`` and ``release``."""
    builds = levels["line"].astype(object).to_numpy()
    if not over_releases:
        return builds
    pairs = zip(builds, levels["release"], strict=True)
    return np.array([_without(build, release) for build, release in pairs], dtype=object)


def releases_in_order(releases: Sequence[str]) -> list[str]:
    """Order releases as pip does: 0.9 before 0.27, ``dev5`` before ``dev47`` and the release."""
    return sorted(set(releases), key=_release_key)


def name_definitions(versions: Mapping[str, int], settings: Settings) -> Mapping[str, str]:
    """Name each definition by what it has of its own."""
    known = {digest: settings.get(digest, {}) for digest in versions}
    names = sorted({name for one in known.values() for name in one})
    varied = [name for name in names if len({one.get(name) for one in known.values()}) > 1]
    found = {
        digest: ", ".join(f"{name} {one[name]}" for name in varied[:_NAMED] if name in one)
        for digest, one in known.items()
    }
    if len(set(found.values())) < len(found):
        found = {digest: f"version {version}" for digest, version in versions.items()}
    if len(set(found.values())) < len(found):
        found = {digest: f"definition {digest[:_SHORT]}" for digest in versions}
    return found


@lru_cache(maxsize=4096)
def _without(build: str, release: str) -> str:
    return build.replace(release, _ANY_RELEASE, 1) if release else build


def _release_key(release: str) -> tuple[bool, Version | tuple[int, ...], str]:
    try:
        return True, Version(release), release
    except InvalidVersion:  # a name that pip does not know is older than all others
        return False, tuple(map(int, _NUMBER.findall(release))), release
