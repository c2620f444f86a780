"""One call for every release."""

import inspect
from collections.abc import Callable
from typing import Any


def call_with_known(function: Callable[..., Any], **arguments: Any) -> Any:
    """Call with those of the arguments that the function of this release has."""
    known = inspect.signature(function).parameters
    return function(**{name: value for name, value in arguments.items() if name in known})
