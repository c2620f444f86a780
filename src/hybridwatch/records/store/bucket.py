"""One place in an object store: list, read, create, remove; each failure as one line.

By obstore, the Python side of Apache Arrow's ``object_store``: one typed interface to S3, Google
and Azure that creates a file only where there is none, and repeats what failed for a bounded time.
Credentials are found as the provider's own tools find them, and stand in no message.
"""

import importlib.util
import os
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hybridwatch.errors import RecordError

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_Answer = TypeVar("_Answer")

RETRIES: Final = 6
"""How often a request is repeated that failed on the way or on the server."""
_RETRY_S: Final = 60.0
_REQUEST_S: Final = 30.0
"""Seconds without an answer after which a request has failed."""
_LONGEST: Final = 300
"""Characters of a failure that are shown."""


class ConflictError(RecordError):
    """The store has another file of the same name."""


class Bucket:
    """Objects below a prefix, by their names relative to it.

    Args:
        url: ``s3://BUCKET/PREFIX`` and the like.

    Raises:
        RecordError: obstore is not installed, or cannot make anything of the URL.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._store = _connected(url)

    def sizes(self, folder: str = "") -> dict[str, int]:
        """List what is there, or in one folder: bytes by name."""
        import obstore

        def ask() -> dict[str, int]:
            batches = obstore.list(self._store, folder or None)
            return {one["path"]: one["size"] for batch in batches for one in batch}

        return self._answer("cannot be listed", ask)

    def read(self, name: str) -> bytes | None:
        """Read an object; ``None`` if there is none."""
        import obstore

        def ask() -> bytes | None:
            try:
                return bytes(obstore.get(self._store, name).bytes())
            except FileNotFoundError:
                return None

        return self._answer(f"{name} cannot be read", ask)

    def create(self, name: str, content: bytes) -> None:
        """Make an object that is not there yet; the same once more changes nothing.

        Raises:
            ConflictError: One of this name is there with other bytes.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError

        def ask() -> bool:
            try:
                obstore.put(self._store, name, content, mode="create")
            except AlreadyExistsError:
                return False
            return True

        # An answer that was lost on its way makes the repeated request find its own object.
        if not self._answer(f"{name} cannot be written", ask) and self.read(name) != content:
            raise ConflictError(
                f"{self.url}: {name} is there already and says something else; records never change"
            )

    def remove(self, name: str) -> None:
        """Remove an object, if it is there."""
        import obstore

        self._answer(f"{name} cannot be removed", lambda: obstore.delete(self._store, name))

    def _answer(self, failed: str, ask: Callable[[], _Answer]) -> _Answer:
        try:
            return ask()
        except Exception as error:  # noqa: BLE001 (obstore's and a credential provider's own)
            raise RecordError(f"{self.url}: {failed}: {_reason(error)}") from None


def _connected(url: str) -> "ObjectStore":
    try:
        from obstore.store import from_url
    except ImportError:
        raise RecordError(
            f'{url}: an object store needs pip install "hybridwatch[remote]"'
        ) from None
    try:
        return from_url(
            url,
            client_options={"timeout": f"{_REQUEST_S:g}s", "allow_http": _may_be_plain()},
            retry_config={"max_retries": RETRIES, "retry_timeout": timedelta(seconds=_RETRY_S)},
            **_credentials(url),
        )
    except Exception as error:  # noqa: BLE001 (obstore's own)
        raise RecordError(f"{url}: {_reason(error)}") from None


def _may_be_plain() -> bool:
    """Whether the address that the environment names may be one of plain HTTP."""
    return os.environ.get("AWS_ALLOW_HTTP", "").lower() in {"1", "true"}


def _credentials(url: str) -> dict[str, Any]:
    """Find credentials by boto3 where it is installed: it knows profiles and single sign-on."""
    if not url.startswith("s3:") or importlib.util.find_spec("boto3") is None:
        return {}
    from boto3 import Session
    from obstore.auth.boto3 import Boto3CredentialProvider

    session = Session()
    if session.get_credentials() is None:
        return {}
    region = {"region": session.region_name} if session.region_name else {}
    return {"credential_provider": Boto3CredentialProvider(session), **region}


def _reason(error: Exception) -> str:
    """Give the first line of a failure, without the server's page."""
    lines = str(error).partition("Debug source")[0].splitlines()
    line = lines[0].partition(": <")[0].strip() if lines else ""
    return line[:_LONGEST] or type(error).__name__
