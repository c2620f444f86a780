"""The address of a store of records, as users write it: a folder, or an object store's URL."""

import hashlib
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from platformdirs import user_data_path

from hybridwatch.errors import RecordError
from hybridwatch.records.naming import safe_name
from hybridwatch.records.store.mirror import make_mirror, mirror_at

RESULTS_VARIABLE: Final = "HYBRIDWATCH_RESULTS"
"""Environment variable that names a results folder, or its URL, where none is given."""

_SCHEMES: Final = ("s3", "gs", "az")
_FILE: Final = "file"
_DIGITS: Final = 8


def is_address(text: str) -> bool:
    """Whether a text is a URL and no path."""
    return "://" in text


def results_folder(text: str) -> Path:
    """Give the results folder that a path or a URL names.

    The text is a path, ``file:///FOLDER``, or ``s3://BUCKET/PREFIX`` (``gs``, ``az``). The folder
    of an object store is its mirror, in the user's folder for data.

    Raises:
        RecordError: It is another kind of URL, has a user or a password, or names no bucket.
    """
    if not is_address(text):
        return Path(text)
    parts = urlsplit(text)
    if parts.scheme == _FILE:
        if parts.netloc not in {"", "localhost"} or not parts.path:
            raise RecordError(_expected("a file URL of another machine"))
        return Path(unquote(parts.path))
    if parts.scheme not in _SCHEMES:
        raise RecordError(_expected(f"one of {parts.scheme!r}"))
    if "@" in parts.netloc or parts.query or parts.fragment:
        # Not shown: it may hold a secret.
        raise RecordError(_expected("a user, a password or options in it"))
    if not parts.netloc:
        raise RecordError(_expected("one without a bucket"))
    url = f"{parts.scheme}://{parts.netloc}/{parts.path.strip('/')}".rstrip("/")
    digest = hashlib.sha256(url.encode()).hexdigest()[:_DIGITS]
    name = safe_name(f"{parts.netloc}{parts.path}".strip("/").replace("/", "-"))
    return make_mirror(user_data_path("hybridwatch") / "stores" / f"{name}-{digest}", url)


def _expected(found: str) -> str:
    schemes = ", ".join(f"{scheme}://BUCKET/PREFIX" for scheme in _SCHEMES)
    return f"results: expected a folder, file:///FOLDER or {schemes}, found {found}"


def results_name(results: Path) -> str:
    """Give what a person writes to name a results folder: of a mirror the URL."""
    mirror = mirror_at(results)
    return str(results) if mirror is None else mirror.bucket.url
