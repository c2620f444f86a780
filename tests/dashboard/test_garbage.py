"""What pages drop stays out of Streamlit's sight, and goes once in a while all the same."""

import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import garbage
import pytest


class Circle:
    """Something that only a look at everything finds to be dropped."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def everything_seen(nothing_later: None) -> Iterator[None]:
    """Leave the process as it was."""
    yield
    gc.unfreeze()
    gc.collect()


def dropped() -> "weakref.ref[Circle]":
    """Make a circle that nothing holds."""
    return weakref.ref(Circle())


def test_streamlit_does_not_look_at_what_lived_when_a_page_was_drawn() -> None:
    with garbage.hidden_from_streamlit():
        circle = dropped()
    gc.collect(2)  # as Streamlit does after each run
    assert circle() is not None
    garbage.clean()
    assert circle() is None


def test_without_hiding_streamlit_would_look() -> None:
    circle = dropped()
    gc.collect(2)
    assert circle() is None


def test_a_page_that_fails_is_hidden_too() -> None:
    with pytest.raises(ZeroDivisionError), garbage.hidden_from_streamlit():
        1 / 0  # noqa: B018
    assert gc.get_freeze_count() > 0


def test_everything_is_looked_at_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []

    class At:
        """A timer that does not wait."""

        def __init__(self, after_s: float, _work: object) -> None:
            self.after_s = after_s

        def start(self) -> None:
            looks.append(self.after_s)

    clock = iter([100.0, 130.0, 159.0, 161.0, 162.0, 222.0])
    monkeypatch.setattr("garbage.time.monotonic", lambda: next(clock))
    monkeypatch.setattr("garbage.threading.Timer", At)
    monkeypatch.setattr(garbage, "_looked", 100.0)
    for _ in range(6):
        with garbage.hidden_from_streamlit():
            pass
    assert looks == [1.0, 1.0]


def test_the_server_makes_pythons_own_looks_rare() -> None:
    code = "import gc, server; print(*gc.get_threshold())"
    here = Path(garbage.__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=here, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["100000", "50", "100"]
