"""``python -m hybridwatch_engine_lab.studies.fix_cost MODEL``: what a fix costs in every step.

One engine in one process decodes batches; the forms of a fix go in and out of it between short
stretches of steps, so all see the same machine:

- ``stock``: without the fix; in a release that has it, with it taken out.
- ``ours``: with the patches that would put the fix into a release that lacks it; in one that has
  it, on top of its own.
- ``upstream``: as released, in a release that has it.

Fixes that act when an engine starts cannot be measured so. Prints one JSON object, explained in
``engine/README.md``; the exit status is 1 when our form of any fix adds a host synchronisation.
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from hybridwatch_engine.fixes.fix import Fix
from hybridwatch_engine.fixes.registry import FIXES
from hybridwatch_engine.patch import PatchSet
from hybridwatch_engine.probes.host_sync import runs_on_cuda
from hybridwatch_engine.source import SourceTree, installed_tree

from hybridwatch_engine_lab.studies.stepping import (
    STEPS,
    Forms,
    compute_speeds,
    count_syncs,
    device_name,
    give,
    own_answer,
    say,
    start,
    step_time_ratio,
    time_stretches,
)

LIVE = [id_ for id_, fix in FIXES.items() if fix.apply and fix.header.switch == "live"]
_RUNNER_V2 = "v1/worker/gpu/"


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the engine, measure the fixes, print."""
    parser = argparse.ArgumentParser(prog="python -m hybridwatch_engine_lab.studies.fix_cost")
    parser.add_argument("model")
    parser.add_argument("--batches", type=int, nargs="+", default=[8], help="requests in a batch")
    parser.add_argument("--rounds", type=int, default=40, help="stretches of each form")
    parser.add_argument("--fix", action="append", choices=LIVE, help="this one; else all")
    parser.add_argument(
        "--engine",
        type=json.loads,
        default={},
        help="more of the engine's arguments, as JSON: speculative_config, mamba_cache_mode",
    )
    options = parser.parse_args(arguments)
    with own_answer() as answer:
        engine = start(options.model, max(options.batches), options.engine)
        tree = installed_tree()
        none: Forms = {"stock": PatchSet(), "ours": PatchSet()}
        forms = {id_: build_forms(FIXES[id_], tree) for id_ in options.fix or reached()}
        forms = {"none": none, **forms}
        fixes: dict[str, dict[str, Any]] = {id_: {} for id_ in forms}
        results = {
            "device": device_name(),
            "rounds": options.rounds,
            "steps": STEPS,
            "syncs": "waits for the device" if runs_on_cuda() else "host reads",
            "fixes": fixes,
        }
        for rows in options.batches:
            for id_ in (id_ for id_, of_fix in forms.items() if of_fix):
                fixes[id_][str(rows)] = costs(engine, forms[id_], rows, options.rounds, id_)
                give(answer, results)
    return int(adds_syncs(fixes))


def reached() -> list[str]:
    """Name the fixes of the model runner in use; code of the other one is never run."""
    v2 = os.environ.get("VLLM_USE_V2_MODEL_RUNNER") == "1"
    return [id_ for id_ in LIVE if FIXES[id_].header.target.startswith(_RUNNER_V2) is v2]


def build_forms(fix: Fix, tree: SourceTree) -> Forms:
    """The forms that a fix has in a release; none where it cannot be put in."""
    state = fix.probe(tree).state
    try:
        ours = fix.apply() if fix.apply else None
    except (AttributeError, ImportError) as error:  # what it changes is not in this release
        say(f"{fix.header.id}: cannot be put into this release: {error}")
        return {}
    if ours is None or state == "not-applicable":
        return {}
    if state == "lacking":
        return {"stock": PatchSet(), "ours": ours}
    stock = {"stock": fix.revert()} if fix.revert else {}
    return {**stock, "upstream": PatchSet(), "ours": ours}


def costs(engine: Any, forms: Forms, rows: int, rounds: int, name: str) -> dict[str, Any]:
    """Speed of each form, step times against each other, and the synchronisations they add."""
    say(f"{name}, {rows} requests")
    found = time_stretches(engine, forms, rows, rounds)
    pairs = [("ours", "stock"), ("upstream", "stock"), ("ours", "upstream")]
    return {
        **compute_speeds(found),
        "step_time": {
            f"{one}/{other}": step_time_ratio(found, one, other)
            for one, other in pairs
            if one in forms and other in forms
        },
        "syncs_added": syncs_added(count_syncs(engine, forms, rows)),
    }


def syncs_added(per_step: Mapping[str, float]) -> dict[str, float]:
    """What each form adds to the one that it goes on top of."""
    under = {"upstream": "stock", "ours": "upstream" if "upstream" in per_step else "stock"}
    return {
        form: per_step[form] - per_step[base]
        for form, base in under.items()
        if form in per_step and base in per_step
    }


def adds_syncs(fixes: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> bool:
    """Whether our form of any fix adds a host synchronisation at any batch size."""
    return any(
        batch["syncs_added"]["ours"] > 0 for batches in fixes.values() for batch in batches.values()
    )


if __name__ == "__main__":
    sys.exit(main())
