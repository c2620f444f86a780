"""Under which names the dashboard answers.

A page of another site can let its own name point to this machine once it is loaded (DNS rebinding):
the browser then takes the dashboard for a part of that site and hands it every record. The name
gives it away, so a request under a name that nobody gave is refused.
"""

import ipaddress
import re
import socket
from dataclasses import dataclass
from typing import Final

HOSTS: Final = "HYBRIDWATCH_DASHBOARD_HOSTS"
"""Set by us for the server: the address it listens on, and the names from ``--allow-host``."""

NAME: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252}[A-Za-z0-9_])?")
_HEADER: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::[0-9]*)?", re.IGNORECASE)
_LOCAL: Final = "localhost"


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names and addresses that a request may be for.

    Attributes:
        names: In lower case; loopback goes without saying.
        any_address: Whether every address will do. None can be pointed elsewhere as a name can.
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
    everywhere = any(_is_any(name) for name in names)
    if everywhere:
        names.add(_plain(socket.gethostname()))
    return Hosts(frozenset(names), everywhere)


def _plain(name: str) -> str:
    """Write one host in one way: lower case, no brackets, no dot of the root at the end."""
    name = name.lower().strip("[]").removesuffix(".")
    address = _address(name)
    return name if address is None else str(address)


def _is_any(name: str) -> bool:
    address = _address(name)
    return address is not None and address.is_unspecified


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
