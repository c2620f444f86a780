"""The screen that this distribution adds to the dashboard; an entry point names it."""

from typing import Final

from hybridwatch.pages.screen import Screen

MUTANTS: Final = Screen(
    "mutants", "Mutants", "Evidence", module="hybridwatch_lab.mutants.screen", after="sees"
)
