"""Calls that are refused, by what the error says."""

from collections.abc import Callable
from typing import Any

import pytest


def refusal(kind: type[Exception], call: Callable[..., object], *words: Any, **named: Any) -> str:
    """Make a call that must be refused with an error of a kind; gives what the error says."""
    with pytest.raises(kind) as caught:
        call(*words, **named)
    return str(caught.value)
