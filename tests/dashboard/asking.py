"""Raw requests to a dashboard, under whatever name."""

import http.client
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

_LIMIT_S: Final = 120
SOCKET: Final = "/_stcore/stream"
UPGRADE: Final = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}

Ask = Callable[..., tuple[int, dict[str, str], bytes]]


def asking(address: str) -> Ask:
    """Send single requests under any name; a socket is asked for by its path."""
    place = urlsplit(address)

    def ask(path: str, *names: str, port: bool = True) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=_LIMIT_S)
        try:
            connection.putrequest("GET", path, skip_host=True)
            for name in names:
                whole = f"{name}:{place.port}" if port else name
                connection.putheader("Host", whole)
                connection.putheader("Origin", f"http://{whole}")
            for header in UPGRADE.items() if path == SOCKET else ():
                connection.putheader(*header)
            connection.endheaders()
            answer = connection.getresponse()
            body = b"" if answer.status == http.client.SWITCHING_PROTOCOLS else answer.read()
            return answer.status, {name.lower(): v for name, v in answer.getheaders()}, body
        finally:
            connection.close()

    return ask
