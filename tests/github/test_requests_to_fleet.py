"""What people ask for where a fleet measures: into its queue, and its answers into our comment."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from hybridwatch.cli import answer
from hybridwatch.engines.builds import DEFAULT_BUILD
from hybridwatch.errors import FleetError
from hybridwatch.integrations.github.our_comment import CommentRequest, RequestState, queue_in
from hybridwatch.orchestration.fleet.job_queue import open_queue
from hybridwatch.orchestration.fleet.lookup import request_batch_id, requested_jobs
from hybridwatch.orchestration.fleet.matrix import read_matrix
from tests.command_line import run_verb
from tests.github.hub import NUMBER, REPOSITORY, TOKEN, Hub
from tests.unit.cli.test_fleet import pretend

__all__ = ["pretend"]

RUN = "@hybridwatch run smoke/padded-graph-rows smoke/dummy-run --trials 9"
MATRIX = """
[[testbed]]
name = "epyc"
labels = { kind = "epyc" }
[[measure]]
scenarios = ["smoke"]
builds = [["cpu-0.27.1"]]
testbeds = ["epyc"]
[ask]
testbed = "epyc"
minutes = 20
"""


@pytest.fixture
def call(tmp_path, monkeypatch, hub) -> Callable[..., Any]:
    """Call a verb of ``answer`` where the home has a queue."""
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_API_URL", hub.base)
    (tmp_path / "fleet.toml").write_text(MATRIX)
    monkeypatch.setattr(answer, "MATRIX_FILE", tmp_path / "fleet.toml")

    def run(*words: str) -> Any:
        place = ["--repo", REPOSITORY, "--results", str(tmp_path / "results")]
        return run_verb("answer", *words, *place, catch_exceptions=False, status=0)

    return run


@pytest.fixture
def ask(call, tmp_path, hub) -> Callable[[str], None]:
    def asked(body: str) -> None:
        (tmp_path / "event.json").write_text(json.dumps(hub.asks(body)))
        call("comment", str(tmp_path / "event.json"))

    return asked


def entries(hub: Hub) -> list[CommentRequest]:
    (body,) = hub.bodies()
    return list(queue_in(body).asked)


def test_what_is_asked_is_queued_measured_and_told(
    hub, call, ask, pretend, tmp_path, monkeypatch
) -> None:
    ask(RUN)
    (entry,) = entries(hub)
    assert (entry.state, entry.note) == (RequestState.QUEUED, "2 jobs in the queue")
    job_queue = open_queue(tmp_path / "results")
    (jobs,) = requested_jobs(job_queue, REPOSITORY)
    assert (jobs.pull_request, jobs.comment, len(jobs.states)) == (NUMBER, entry.comment, 2)
    waiting = job_queue.snapshot(()).waiting
    assert {
        (job.builds, job.testbed, job.options.minutes, job.options.trials) for job in waiting
    } == {((DEFAULT_BUILD, DEFAULT_BUILD), "epyc", 20, 9)}
    call("refresh")
    assert entries(hub)[0].note == "2 waiting"

    monkeypatch.setenv("PYTHONPATH", ".")
    drained = ["fleet", "run", "--label", "kind=epyc", "--patience", "0"]
    run_verb(*drained, "--results", tmp_path / "results")
    assert "done" in call("refresh").output
    (entry,) = entries(hub)
    assert (entry.state, entry.note) == (RequestState.DONE, "2 done")
    (body,) = hub.bodies()
    result = body.partition("<!-- hybridwatch result -->\n")[2]
    assert result.count("\n- <code>") == 2
    before = hub.bodies()
    assert call("refresh").output == ""
    assert hub.bodies() == before


def test_what_was_cancelled_is_reported_as_failed(hub, call, ask, tmp_path) -> None:
    ask(RUN)
    job_queue = open_queue(tmp_path / "results")
    job_queue.cancel([job.key for job in job_queue.snapshot(()).waiting])
    call("refresh")
    (entry,) = entries(hub)
    assert (entry.state, entry.note) == (RequestState.FAILED, "2 cancelled")


@pytest.mark.parametrize(
    ("body", "note"),
    [
        (
            "@hybridwatch bisect smoke/dummy-run --good 0.27.1 --bad 0.32.0",
            "this is not measured here",
        ),
        ("@hybridwatch run smoke --known-bad", "this is not measured here"),
        ("@hybridwatch run gpu --build cpu-0.27.1", "ask.builds[0]: expected builds that can"),
    ],
)
def test_what_the_queue_does_not_take_is_refused(hub, ask, tmp_path, body, note) -> None:
    ask(body)
    (entry,) = entries(hub)
    assert entry.state is RequestState.REFUSED
    assert entry.note.startswith(note)
    assert not open_queue(tmp_path / "results").is_made()


def test_the_same_comment_again_adds_no_job(hub, call, ask, tmp_path) -> None:
    """Also when our comment was lost in between: a job has its night in its name."""
    ask(RUN)
    hub.comments[:] = [one for one in hub.comments if one["user"]["login"] == "ada"]
    call("comment", str(tmp_path / "event.json"))
    assert len(open_queue(tmp_path / "results").snapshot(()).waiting) == 2


def test_jobs_of_another_repository_are_not_ours(tmp_path, hub, ask) -> None:
    ask(RUN)
    job_queue = open_queue(tmp_path / "results")
    assert list(requested_jobs(job_queue, "octo/engine2")) == []
    assert list(requested_jobs(job_queue, "octo/%")) == []
    assert request_batch_id(REPOSITORY, 7, 9) == "octo/engine#7 comment 9"


def test_a_matrix_that_asks_an_unknown_testbed_is_wrong(tmp_path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(MATRIX.replace('[ask]\ntestbed = "epyc"', '[ask]\ntestbed = "epic"'))
    with pytest.raises(FleetError, match='"epic" is no testbed; did you mean'):
        read_matrix(file)
