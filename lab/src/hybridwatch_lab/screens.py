"""The screen that this distribution adds to the dashboard; an entry point names it."""

from typing import Final

from hybridwatch.pages.address import Screen

MUTANTS: Final = Screen(
    "mutants", "Mutants", "Evidence", show="hybridwatch_lab.mutants.screen:show", after="sees"
)
