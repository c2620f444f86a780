"""What the tests of pages without a browser share."""

import threading
from types import SimpleNamespace

import pytest


class Never:
    """A timer that does not start."""

    def __init__(self, *_: object) -> None:
        self.daemon = True

    def start(self) -> None:
        """Do nothing."""


@pytest.fixture
def nothing_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what a page puts off until its reader reads: it would run beside a later test."""
    import frame
    import garbage

    for module in (frame, garbage):
        idle = SimpleNamespace(Timer=Never, Lock=threading.Lock)
        monkeypatch.setattr(module, "threading", idle)
