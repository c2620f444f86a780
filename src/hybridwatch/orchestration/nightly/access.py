"""Access to the dashboard: password, login and host names, checked before it starts.

Streamlit takes a secrets file that it cannot read for none, and would let everyone in. Under a name
of their own for this machine (DNS rebinding) other sites could read every record.
"""

import importlib.util
import ipaddress
import re
import socket
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hybridwatch.errors import HybridwatchError

HOSTS: Final = "HYBRIDWATCH_DASHBOARD_HOSTS"
"""Set by us for the server: the address it listens on, and the names from ``--allow-host``."""

NAME: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252}[A-Za-z0-9_])?")
_HEADER: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::[0-9]*)?", re.IGNORECASE)
_LOCAL: Final = "localhost"
PASSWORD: Final = "HYBRIDWATCH_DASHBOARD_PASSWORD"  # noqa: S105 (a name, no password)
PEOPLE: Final = "HYBRIDWATCH_DASHBOARD_PEOPLE"
LOGIN: Final = "HYBRIDWATCH_DASHBOARD_LOGIN"
"""Set by us for the server: a login was set up when it started, so it is always required."""
SHORTEST: Final = 12
"""Characters of a password. A wrong one waits a second, which is nothing to who tries many."""
_SECRETS: Final = Path(".streamlit") / "secrets.toml"
_NEEDED: Final = (
    "client_id",
    "client_secret",
    "cookie_secret",
    "redirect_uri",
    "server_metadata_url",
)


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names, in lower case, and addresses that a request may be for; loopback always is.

    With ``any_address`` each address will do: none can be pointed elsewhere as a name can.
    """

    names: frozenset[str]
    any_address: bool = False

    def allow(self, header: str) -> bool:
        """Whether a request's ``Host`` is one of these, whatever the port."""
        found = _HEADER.fullmatch(header)
        if found is None:
            return False
        name = _plain(found[1])
        address = _address(name)
        if address is None:
            return name == _LOCAL or name in self.names
        return address.is_loopback or self.any_address or name in self.names


def read_hosts(words: str) -> Hosts:
    """Read what ``HOSTS`` says: the address listened on, then names, with blanks between them.

    One that stands for every address of this machine allows each of them, and the machine's name.
    """
    names = {_plain(word) for word in words.split()}
    addresses = map(_address, names)
    everywhere = any(address is not None and address.is_unspecified for address in addresses)
    if everywhere:
        names.add(_plain(socket.gethostname()))
    return Hosts(frozenset(names), everywhere)


def _plain(name: str) -> str:
    """Write one host in one way: lower case, no brackets, no dot of the root at the end."""
    name = name.lower().strip("[]").removesuffix(".")
    address = _address(name)
    return name if address is None else str(address)


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


class AccessError(HybridwatchError):
    """What shall keep others out is set up wrongly."""


@dataclass(frozen=True, slots=True)
class NightlyAccess:
    """What stands between a reader and the dashboard."""

    password: bool
    login: bool


def read_access(folder: Path, home: Path, environment: Mapping[str, str]) -> NightlyAccess:
    """Find out what ``.streamlit/secrets.toml``, where it is started and in ``home``, sets up."""
    password = environment.get(PASSWORD)
    if password is not None and len(password) < SHORTEST:
        raise AccessError(
            f"{PASSWORD}: expected at least {SHORTEST} characters, found {len(password)}; "
            "make one: openssl rand -base64 18"
        )
    found = [_has_login(place / _SECRETS) for place in (home, folder)]  # each must be whole
    login = any(found)
    if login and importlib.util.find_spec("authlib") is None:
        raise AccessError("a login needs Authlib: pip install 'streamlit[auth]'")
    if PEOPLE in environment and not login:
        raise AccessError(
            f"{PEOPLE} says who may look after logging in, but no login is set up: "
            f"{folder / _SECRETS} has no [auth]"
        )
    return NightlyAccess(password is not None, login)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address; a name other than localhost is not trusted."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _has_login(path: Path) -> bool:
    try:
        secrets = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        raise AccessError(f"{path}: cannot be read: {error}") from error
    if "auth" not in secrets:
        return False
    auth = secrets["auth"] if isinstance(secrets["auth"], dict) else {}
    given = {name for name in _NEEDED if auth.get(name) and isinstance(auth[name], str)}
    if lacking := [name for name in _NEEDED if name not in given]:
        raise AccessError(f"{path}: [auth] lacks {', '.join(lacking)}")
    return True
