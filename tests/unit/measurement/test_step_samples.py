"""Steps and occupancy of a trial: with the throughput they make a product, or they are not told."""

import pytest

from hybridwatch.analysis.attribution import read_parts
from hybridwatch.engines.load_client import StepCounts
from hybridwatch.measurement.load import samples_of_steps
from hybridwatch.records.run import Phase, Sample, Trial
from tests.builders import STARTED

CLIENT = {"duration": 0.55, "total_output_tokens": 384, "output_throughput": 384 / 0.55}


def trial_of(*samples: Sample) -> Trial:
    throughput = Sample("output_throughput", (CLIENT["output_throughput"],))
    return Trial(0, 0, Phase.PERFORMANCE, STARTED, 0.6, samples=(throughput, *samples))


def test_the_product_of_the_factors_is_the_throughput():
    # A trial of ngram speculation: 74 accepted drafts, three of them beyond the end of a request.
    parts = read_parts(trial_of(*samples_of_steps(CLIENT, StepCounts(103, 313, 384, 0), 0.41)))
    assert parts is not None
    assert parts.engine_step_rate == pytest.approx(103 / 0.55)
    assert parts.batch_occupancy == pytest.approx(313 / 103)
    assert parts.acceptance_length == pytest.approx(384 / 313)
    product = parts.engine_step_rate * parts.acceptance_length * parts.batch_occupancy
    assert product == pytest.approx(CLIENT["output_throughput"], rel=1e-14)


def test_processor_time_is_given_per_step():
    samples = samples_of_steps(CLIENT, StepCounts(100, 313, 384, 0), 0.41)
    assert [one.values for one in samples if one.metric == "engine_cpu_time"] == [(0.0041,)]


def test_preemptions_are_those_of_the_trial():
    samples = samples_of_steps(CLIENT, StepCounts(100, 313, 384, 7), 0.41)
    assert [one.values for one in samples if one.metric == "preemptions"] == [(7.0,)]


@pytest.mark.parametrize(
    "made",
    [
        StepCounts(104, 314, 385, 0),  # somebody else asked the engine, too
        StepCounts(0, 0, 0, 0),
    ],
)
def test_steps_that_are_not_those_of_the_load_are_not_told(made):
    assert samples_of_steps(CLIENT, made, 0.41) == ()


def test_a_trial_without_steps_has_no_factors():
    assert read_parts(trial_of()) is None
    assert read_parts(trial_of(Sample("engine_step_rate", (187.0,)))) is None
