"""Fixes and faults of the user's own, as the plugin in an engine is given them."""

import json
from typing import Final

from hybridwatch.scenarios.own_faults import own_folders

SETTINGS: Final = "HYBRIDWATCH_ENGINE"
"""The variable of an engine's environment that has the plugin's settings, as JSON."""


def own_settings() -> dict[str, list[str]]:
    """Give the plugin's settings that name folders, those without any left out."""
    named = {"own_fixes": own_folders("fixes"), "own_mutants": own_folders("mutants")}
    return {key: list(map(str, folders)) for key, folders in named.items() if folders}


def own_variables() -> dict[str, str]:
    """Give what a process needs in its environment to know the folders, and nothing else."""
    settings = own_settings()
    return {SETTINGS: json.dumps(settings)} if settings else {}
