"""One call, and one configuration, for every release."""

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


def call_with_known(function: Callable[..., Any], **arguments: Any) -> Any:
    """Call with those of the arguments that the function of this release has."""
    known = inspect.signature(function).parameters
    return function(**{name: value for name, value in arguments.items() if name in known})


class Plain(SimpleNamespace):
    """Something of the engine's without features: what a release asks for beyond its names is off.

    What can be switched on differs from release to release, and makes no difference here.
    """

    def __getattr__(self, name: str) -> bool:
        """Say no to every feature; Python's own questions have no answer."""
        if name.startswith("__"):
            raise AttributeError(name)
        return False
