"""What every test may ask for."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

# Tests read what is printed: whoever likes colours or long lines in files must not change it.
for _wish in ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):
    os.environ.pop(_wish, None)

ENGINE_TESTS: Final = ("tests/engine/", "tests/e2e/")
"""Where the tests are that start engines."""

_GOLDEN: Final = Path(__file__).parent / "golden"


@dataclass(frozen=True, slots=True)
class Golden:
    """Texts as they were reviewed, under ``tests/golden``."""

    folder: Path = _GOLDEN

    def check(self, name: str, text: str) -> None:
        """Compare a text with the reviewed one.

        On a mismatch the text is left beside it as ``NAME.got``; after a review, rename it.
        """
        wanted = self.folder / name
        found = wanted.with_name(wanted.name + ".got")
        if wanted.is_file() and wanted.read_text(encoding="utf-8") == text:
            found.unlink(missing_ok=True)
            return
        found.parent.mkdir(parents=True, exist_ok=True)
        found.write_text(text, encoding="utf-8")
        what = "differs from" if wanted.is_file() else "is not yet"
        pytest.fail(f"{found} {what} {wanted.name}: look at it and rename it if it is right")


class OneEngineAtATime(LoadFileScheduling):  # type: ignore[misc]  # xdist is not typed
    """Keeps together what several workers must not do at a time, or would do twice.

    Engines, of which one is enough for two processors and whose speed some tests measure; and the
    tests of a file, which share what their fixtures make.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = str(super()._split_scope(nodeid))
        return "engine" if file.startswith(ENGINE_TESTS) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> OneEngineAtATime:
    """Share the tests among workers; its own marks get lost with pytest 9.2."""
    return OneEngineAtATime(config, log)


@pytest.fixture
def golden() -> Golden:
    """Check texts against reviewed files."""
    return Golden()
