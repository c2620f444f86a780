"""Secrets of channels, from the environment."""

import os
import re

from hybridwatch.integrations.notify.door import UndeliveredError


def secret_of(variable: str, form: str, expected: str) -> str:
    """Read a secret.

    Args:
        variable: The environment variable that has it.
        form: A pattern that all of it must match.
        expected: What that is, in words.

    Raises:
        UndeliveredError: There is none, or it is something else; it is not repeated.
    """
    found = os.environ.get(variable, "")
    if not found:
        raise UndeliveredError(f"{variable}: expected {expected} in the environment, found none")
    if not re.fullmatch(form, found):
        raise UndeliveredError(
            f"{variable}: expected {expected}, found something else, which is not shown"
        )
    return found
