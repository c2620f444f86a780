from pathlib import Path

import pytest

from hybridwatch.database.reading import list_stamped
from hybridwatch.errors import HybridwatchError, RecordError
from hybridwatch.records.store import list_records, write_run
from tests.builders import a_run
from tests.command_line import run_verb
from tests.store_builders import read_all
from tests.unit.database import speed, synthetic
from tests.unit.database.stores import opened

RUNS = 3


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("made-up")
    synthetic.write_store(folder, RUNS * synthetic.VALUES_PER_RUN, seed=1)
    return folder


def test_a_run_gives_the_index_as_many_values_as_are_asked_for(store):
    index = opened(store).index
    assert index.counts["values"] == RUNS * synthetic.VALUES_PER_RUN
    assert index.broken().empty


def test_everything_says_that_it_was_made_up(store):
    for stored in read_all(store).runs:
        assert stored.run.testbed.id.startswith("synthetic-")
        assert stored.run.harness.revision == synthetic.REVISION
        assert all(build.label.startswith("synthetic-") for build in stored.run.builds)
        assert "synthetic" in stored.run.scenario.id


def test_equal_seeds_give_equal_bytes(store, tmp_path):
    synthetic.write_store(tmp_path / "same", RUNS * synthetic.VALUES_PER_RUN, seed=1)
    synthetic.write_store(tmp_path / "other", RUNS * synthetic.VALUES_PER_RUN, seed=2)
    first, same, other = (
        [path.read_bytes() for path in list_records(folder)]
        for folder in (store, tmp_path / "same", tmp_path / "other")
    )
    assert first == same
    assert not set(first) & set(other)


@pytest.mark.parametrize("inside", ["results", "results/deep/er"])
def test_real_results_are_never_mixed_with_made_up_ones(tmp_path, inside):
    answer = run_verb(tmp_path / inside, "--values", "1", of=synthetic.command, status=1)
    assert "do not belong" in answer.output
    assert not (tmp_path / "results").exists()


def test_store_that_holds_other_records_of_these_runs_is_left_alone(store):
    with pytest.raises(RecordError, match="says something else"):
        synthetic.write_store(store, synthetic.VALUES_PER_RUN, seed=9)


def test_planted_step_and_missing_fix_are_seen(tmp_path):
    synthetic.write_store(tmp_path, 2 * synthetic.VALUES_PER_RUN, seed=1)
    told = opened(tmp_path).index.latest_verdicts().set_index(["contender", "metric", "statistic"])
    verdict = told["verdict"]
    base = "synthetic-0.27.1"
    # A single night is all late; scenario 0 is one of those with a step.
    assert verdict[f"{base}-candidate", "output_throughput", "median"] == "regression"
    assert verdict[f"{base}~padded-rows-prefilling", "accuracy.recall", "mean"] == "regression"
    assert verdict[f"{base}~padded-rows-prefilling", "output_throughput", "median"] == "equivalent"


def test_speed_measures_every_question_and_leaves_the_store_whole(store):
    before = list_stamped(store)
    steps = {step.name: step for step in speed.measure(store, build=True)}
    assert {"build all", "open", "open with one new record", "series, again"} <= set(steps)
    assert all(step.memory_mib > 1 for step in steps.values())
    assert list_stamped(store) == before


def test_speed_refuses_records_that_somebody_measured(tmp_path):
    write_run(tmp_path, a_run({"ttft": (1.0,)}))
    with pytest.raises(HybridwatchError, match="expected a store by"):
        speed.measure(tmp_path)
