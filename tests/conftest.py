"""What every test may ask for."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import hypothesis
import pytest

from hybridwatch.cli.scenarios import make_home
from hybridwatch.system.home import HOME_VARIABLE
from tests.closing import carry_reasons, closing
from tests.draws import draw_alike_in_every_order
from tests.order import GroupScheduling, arrange
from tests.unchanged import leave_to_test_all

# Tests read what is printed: whoever likes colours or long lines in files must not change it.
for _wish in ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):
    os.environ.pop(_wish, None)

# The same is drawn in each run; `--hypothesis-profile=search` draws other things each time.
# A busy machine takes as long as it takes.
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("search", deadline=None, print_blob=True)
hypothesis.settings.load_profile("ci")

TESTS: Final = Path(__file__).parent
_GOLDEN: Final = TESTS / "golden"


def pytest_configure(config: pytest.Config) -> None:
    """Fix what is drawn, and count what the tests take where all of them are reported."""
    if config.getoption("--hypothesis-profile") != "search":
        draw_alike_in_every_order()
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(closing())


@pytest.hookimpl(tryfirst=True)  # before tests are left out by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what need not run now, and order the rest."""
    leave_to_test_all(items)
    carry_reasons(items)
    arrange(items)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling:
    """Keep what shares an engine or a browser on one worker."""
    return GroupScheduling(config, log)


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
    """A home of the user's own, with the files that it starts with."""
    folder = tmp_path / "mine"
    make_home(folder)
    monkeypatch.setenv(HOME_VARIABLE, str(folder))
    return folder
