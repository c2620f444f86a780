"""What every test may ask for."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import hypothesis
import pytest

from hybridwatch.cli.init import make_home
from hybridwatch.home import HOME_VARIABLE

# Tests read what is printed: whoever likes colours or long lines in files must not change it.
for _wish in ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):
    os.environ.pop(_wish, None)

# A busy machine takes as long as it takes.
hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.load_profile("any machine")

TESTS: Final = Path(__file__).parent
_GOLDEN: Final = TESTS / "golden"

LONGEST_FIRST: Final = (
    "engine/test_scenarios.py",
    "e2e/test_nightly.py",
    "e2e/test_story.py",
    "engine/test_padded_rows.py",
    "engine/test_broken_engine.py",
    "dashboard/test_browser_elements.py",
    "dashboard/test_browser.py",
    "unit/watch/test_night.py",
    "unit/engine/test_install.py",
    "unit/gpu/test_pack.py",
    "unit/quality/test_harness.py",
    "e2e/test_interruption.py",
    "e2e/test_wheel.py",
)
"""Files that take a minute or more: begun last, one would keep a worker alone at the end."""


LIVE: Final = frozenset({"engine", "e2e", "dashboard"})
"""Folders, also named in the Makefile, where alone tests may need an engine or a browser."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first, and last in its file what ends what the others share.

    Raises:
        UsageError: A test that needs an engine or a browser lies where ``make test`` misses it.
    """
    for item in items:
        live = any(item.get_closest_marker(name) for name in ("engine", "browser"))
        if live and LIVE.isdisjoint(item.path.parts):
            raise pytest.UsageError(f"{item.path}: a test with an engine belongs in {sorted(LIVE)}")
    long = {TESTS / name: place for place, name in enumerate(LONGEST_FIRST)}
    shuffled: dict[Path, int] = {}
    for place, item in enumerate(items, len(long)):
        shuffled.setdefault(item.path, place)
    items.sort(
        key=lambda item: (
            long.get(item.path, shuffled[item.path]),
            item.get_closest_marker("last") is not None,
        )
    )


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


@pytest.fixture
def golden() -> Golden:
    """Check texts against reviewed files."""
    return Golden()


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of somebody's own, with the files that it starts with."""
    folder = tmp_path / "mine"
    make_home(folder)
    monkeypatch.setenv(HOME_VARIABLE, str(folder))
    return folder
