"""``fleet.toml``: what it asks for, and every way in which it can be wrong."""

import re
from pathlib import Path

import pytest

from hybridwatch.errors import FleetError
from hybridwatch.orchestration.fleet.job import HostKind, build_job_row, parse_job_row
from hybridwatch.orchestration.fleet.matrix import buildkite_steps, github_matrix, read_matrix
from hybridwatch.system.home import home
from tests.mistakes import read_mistakes
from tests.unit.orchestration.fleet.pretended import NOW

GOOD = """
hours = 10

[[testbed]]
name = "epyc"
labels = { kind = "epyc" }
expect = { kernel = "6.1.0" }
a_a = { scenario = "smoke/dummy-run", build = "cpu-0.27.1" }

[[testbed]]
name = "h100"
labels = { kind = "h100" }
gpus = 2

[[measure]]
scenarios = ["smoke/padded-graph-rows", "smoke/dummy-run"]
builds = [["cpu-0.27.1", "cpu-0.28.0"], ["cpu-0.27.1"]]
testbeds = ["epyc"]
minutes = 30

[[measure]]
scenarios = ["smoke/dummy-run"]
builds = [["cpu-0.27.1"]]
testbeds = ["epyc"]
priority = 5
trials = 9
stand_in = true
"""


@pytest.fixture
def write(tmp_path):
    def write(text: str) -> Path:
        path: Path = tmp_path / "fleet.toml"
        path.write_text(text)
        return path

    return write


def jobs_of(path: Path, batch_id: str = "n"):
    return read_matrix(path).jobs(home() / "scenarios", batch_id, NOW)


def test_each_scenario_is_a_job_for_each_pair_of_builds(write) -> None:
    jobs = jobs_of(write(GOOD))
    assert [(job.scenario, len(job.builds)) for job in jobs] == [
        ("smoke/padded-graph-rows", 2),
        ("smoke/dummy-run", 2),
        ("smoke/padded-graph-rows", 1),
        ("smoke/dummy-run", 1),
    ]
    assert len({job.key for job in jobs}) == 4
    assert {job.series for job in jobs} == {"epyc smoke/padded-graph-rows", "epyc smoke/dummy-run"}


def test_of_two_wishes_for_one_job_the_more_urgent_counts(write) -> None:
    *_, urgent = jobs_of(write(GOOD))
    assert (urgent.priority, urgent.options.trials, urgent.options.stand_in) == (5, 9, True)


def test_another_night_has_jobs_of_its_own(write) -> None:
    path = write(GOOD)
    first, again, other = ({job.key for job in jobs_of(path, batch_id)} for batch_id in "aab")
    assert first == again
    assert not first & other


def test_a_job_and_a_testbed_come_back_from_their_rows(write) -> None:
    from collections import namedtuple

    path = write(GOOD)
    for job in jobs_of(path):
        row = build_job_row(job)
        assert parse_job_row(namedtuple("Row", row)(**row)) == job
    for testbed in read_matrix(path).testbeds:
        assert HostKind.model_validate_json(testbed.model_dump_json()) == testbed


@pytest.mark.parametrize(("old", "new", "told"), read_mistakes("matrix"))
def test_what_is_wrong_is_named_with_file_and_key(write, old, new, told) -> None:
    assert GOOD.count(old) == 1
    path = write(GOOD.replace(old, new))
    with pytest.raises(FleetError) as error:
        jobs_of(path)
    assert str(path) in str(error.value)
    assert told in str(error.value)


def test_the_example_of_every_key_is_a_matrix(write) -> None:
    shown = (home() / "ci" / "fleet.toml").read_text(encoding="utf-8").partition("# Every key:")[2]
    text = re.sub(r"^# ?", "", shown, flags=re.MULTILINE)
    matrix = read_matrix(write(text))
    assert matrix.jobs(home() / "scenarios", "n", NOW)
    written = set(re.findall(r"^(\w+) =", text, re.MULTILINE))
    assert matrix.confirm
    for part in (*matrix.measures, matrix.confirm, *matrix.testbeds):
        assert set(type(part).model_fields) <= written
    with pytest.raises(FleetError, match="priorty"):
        read_matrix(write(text.replace("priority", "priorty")))


def test_a_missing_file_is_named(tmp_path) -> None:
    with pytest.raises(FleetError, match="cannot be read"):
        read_matrix(tmp_path / "fleet.toml")


def test_pipelines_get_the_same_jobs(write) -> None:
    path = write(GOOD)
    kinds = {one.name: one for one in read_matrix(path).testbeds}
    jobs = jobs_of(path)
    entries = github_matrix(jobs, kinds)["include"]
    steps = buildkite_steps(jobs, kinds)["steps"]
    assert [entry["command"] for entry in entries] == [step["command"] for step in steps]
    assert entries[-1] == {
        "name": "smoke/dummy-run cpu-0.27.1 on epyc",
        "testbed": "epyc",
        "runs-on": ["self-hosted", "kind-epyc"],
        "timeout-minutes": 60,
        "command": "hybridwatch run smoke/dummy-run --build cpu-0.27.1 --trials 9",
    }
    assert steps[0]["agents"] == {"kind": "epyc"}
    assert steps[0]["concurrency_group"] == steps[2]["concurrency_group"]
