"""Tells two scenario contents apart."""

import hashlib
import json
from typing import TypedDict

from hybridwatch.scenarios.scenario import Scenario


class RefFields(TypedDict):
    """The arguments of ``record.ScenarioRef``, which this layer cannot name."""

    id: str
    version: int
    digest: str
    fix: str


def digest(scenario: Scenario) -> str:
    """Return the SHA-256, in hexadecimal, of what the scenario asks of an engine.

    What leaves each single number as it is does not count: comments, layout, ``why``, the file's
    place, expectations, which releases come up, the fix of model runner V2, and how often a thing
    is measured. A key left at its default does not count either, so that a field added later leaves
    the digests of older files as they were.
    """
    content = scenario.model_dump(
        mode="json",
        exclude={
            "id": True,
            "fix_v2": True,
            "why": True,
            "since": True,
            "until": True,
            "expect": True,
            "trials": True,
            "accuracy": {"documents"},
            "sweep": {"known_bad"},
        },
        exclude_defaults=True,
    )
    content["fix"] = scenario.written_fix
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def ref_fields(scenario: Scenario) -> RefFields:
    """Return what a record keeps of a scenario: ``ScenarioRef(**ref_fields(scenario))``."""
    return RefFields(
        id=scenario.id, version=scenario.version, digest=digest(scenario), fix=scenario.fix
    )
