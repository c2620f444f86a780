"""The engine's own count of its steps, held against a probe inside it on the same load."""

from typing import Any

from hybridwatch.engines.load_client import StepCounts, read_step_counts
from hybridwatch.measurement.load import TrialContext, run_load
from hybridwatch.measurement.phase import _watching


def assert_steps_are_seen(trial: TrialContext) -> tuple[dict[str, Any], StepCounts]:
    """Load an engine that computes each prompt in one step; gives the client's JSON, too."""
    server = trial.engine.server
    before = read_step_counts(server)
    with _watching(trial, "host-sync") as seen:
        result = run_load(trial, trial.scenario.workload.generation)
    after = read_step_counts(server)
    assert before is not None
    assert after is not None
    made = after.since(before)
    assert made.steps == len(seen["reads_per_step"]) > 0
    assert made.tokens == result["total_output_tokens"]
    return result, made
