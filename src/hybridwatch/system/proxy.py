"""Environment of a process that talks to an engine on this machine."""

import os
from typing import Final

_LOOPBACK: Final = "127.0.0.1,localhost"


def without_proxy() -> dict[str, str]:
    """Variables that keep loopback requests from a proxy, on top of what is exempt already."""
    exempt = {name: os.environ.get(name) for name in ("NO_PROXY", "no_proxy")}
    return {name: ",".join(filter(None, (hosts, _LOOPBACK))) for name, hosts in exempt.items()}
