"""Scenarios: what is run on an engine, what is measured, and what must hold.

``scenario`` has the types and the rules between fields, ``load`` reads TOML files, ``digest``
distinguishes two contents, ``validation_text`` words what is wrong with a file. Nothing here starts
an engine.
"""

from hybridwatch.scenarios.digest import digest, ref_fields
from hybridwatch.scenarios.fixes import FIXES
from hybridwatch.scenarios.load import Survey, find, load_scenario, survey
from hybridwatch.scenarios.scenario import Scenario

__all__ = [
    "FIXES",
    "Scenario",
    "Survey",
    "digest",
    "find",
    "load_scenario",
    "ref_fields",
    "survey",
]
