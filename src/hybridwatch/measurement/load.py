"""The timed load: what vLLM's benchmark client saw of it, and what the engine did meanwhile."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hybridwatch.engines.deployment import Server
from hybridwatch.engines.step_counts import StepCounts, read_step_counts
from hybridwatch.measurement.trial_context import TrialContext
from hybridwatch.records.readings import CLOCK_DIGITS, accepted_drafts, latencies
from hybridwatch.records.run import Sample
from hybridwatch.scenarios.workload import Generation

LOAD_TIMEOUT_S: Final = 120.0


def run_load(trial: TrialContext, load: Generation) -> dict[str, Any]:
    """Load the engine once, and bring back the JSON of vLLM's benchmark client."""
    result = trial.work / f"client.{trial.side}.json"
    return trial.client.run(trial.engine.server, load, result, LOAD_TIMEOUT_S)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the timed load took.

    Attributes:
        made: Steps of the engine from before the load until after it; None if it counts none.
        worked_s: Processor time of the engine in the same span.
    """

    result: Mapping[str, Any]
    made: StepCounts | None
    worked_s: float


def work_of_load(trial: TrialContext, load: Generation) -> Loaded:
    """Load the engine once, and say what it worked."""
    server = trial.engine.server
    before, worked_before = read_step_counts(server), _processor_seconds(server)
    result = run_load(trial, load)
    worked, after = _processor_seconds(server) - worked_before, read_step_counts(server)
    made = after.since(before) if before is not None and after is not None else None
    return Loaded(result, made, worked)


def _processor_seconds(server: Server) -> float:
    """What the engines behind an address have worked since they began, of a pair both."""
    return sum(engine.processor_seconds() for engine in server.servers)


def samples_of_client(result: Mapping[str, Any]) -> tuple[Sample, ...]:
    """Raw values of one trial from the JSON of vLLM's benchmark client."""
    return (
        Sample("output_throughput", (result["output_throughput"],)),
        Sample("request_throughput", (result["request_throughput"],)),
        *latencies(result["ttfts"], result["itls"], result["output_lens"]),
        *_acceptance(result),
    )


def samples_of_steps(
    result: Mapping[str, Any], made: StepCounts, worked_s: float
) -> tuple[Sample, ...]:
    """How fast the engine stepped, how full its steps were, and how much work each was.

    The first two together with the tokens that a request got per step make up the output
    throughput, to the last digit:
    ``tokens / s = steps / s * requests / step * tokens / (request and step)``.

    ``made`` and ``worked_s`` are of the engine from before the load until after it, all its
    processes together. There are no samples when the engine gave other tokens than those that the
    client counted: then the steps are not those of the load alone.
    """
    if not made.steps or made.tokens != result["total_output_tokens"]:
        return ()
    return (
        Sample("engine_step_rate", (made.steps / result["duration"],)),
        Sample("batch_occupancy", (made.shares / made.steps,)),
        Sample("engine_cpu_time", (round(worked_s / made.steps, CLOCK_DIGITS),)),
        Sample("preemptions", (float(made.preemptions),)),
    )


def _acceptance(result: Mapping[str, Any]) -> Iterator[Sample]:
    """What became of the drafts; nothing when the engine made none."""
    if not result.get("spec_decode_num_drafts"):
        return
    yield from accepted_drafts(
        result["spec_decode_acceptance_length"],
        result["spec_decode_per_position_acceptance_rates"],
    )
