"""Keep the process group's rendezvous off the network.

``torch.distributed`` lets its TCP store listen on every interface, also when all processes live
on this machine. A store whose host is the loopback address gets a socket that listens there only.
"""

import importlib
import socket
from collections.abc import Callable
from functools import cache
from typing import Any

from hybridwatch_engine.patch import Patch, PatchSet

_BACKLOG = 128


def _loopback_only(original: Callable[..., Any]) -> Callable[..., Any]:
    def store(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("is_master") and kwargs.get("host_name") in {"127.0.0.1", "localhost"}:
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            listener.bind(("127.0.0.1", kwargs["port"]))
            listener.listen(_BACKLOG)
            kwargs["master_listen_fd"] = listener.detach()  # the store closes it
        return original(*args, **kwargs)

    return store


@cache
def loopback_rendezvous() -> PatchSet:
    """The patch, made once per process."""
    # Not "from torch.distributed import rendezvous": a function of that name hides the module.
    rendezvous = importlib.import_module("torch.distributed.rendezvous")
    return PatchSet(Patch(rendezvous, "TCPStore", _loopback_only))
