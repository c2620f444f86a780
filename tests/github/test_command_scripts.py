"""The workflow and the scripts of a command in a comment: who decides, who measures, who tells."""

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from hybridwatch.cli.main import verbs
from hybridwatch.engines.builds import DEFAULT_BUILD, load_builds
from hybridwatch.integrations.github.our_comment import RequestState, queue_in
from tests.github.hub import HEAD, NUMBER, Hub
from tests.github.test_asking import ARGUMENTS, RUN
from tests.github.test_scripts import (
    ROOT,
    WORKFLOWS,
    Script,
    bundle_of,
    called,
    copy_scripts,
    measured,
    said_in,
    script,
)
from tests.github.test_suspects import answer

__all__ = ["measured", "script"]

TEXT: Final = (WORKFLOWS / "command.yml").read_text()
DECIDE, MEASURE, TELL = (
    f"  {name}:{TEXT.partition(f'  {name}:')[2].partition(f'{chr(10)}  {following}:')[0]}"
    for name, following in (("decide", "measure"), ("measure", "tell"), ("tell", "none"))
)


def decide(hub: Hub, script: Script, tmp_path: Path, event: dict[str, Any]) -> str:
    """Run ci/command.sh on an event; gives what it left for the other jobs."""
    file, job = tmp_path / "event.json", tmp_path / "output"
    file.write_text(json.dumps(event))
    job.write_text("")
    done = script(hub, "command.sh", GITHUB_EVENT_PATH=str(file), GITHUB_OUTPUT=str(job))
    assert done.returncode == 0, done.stderr
    return job.read_text()


def test_who_may_write_starts_a_measurement(hub, script, tmp_path) -> None:
    left = decide(hub, script, tmp_path, hub.asks(RUN))
    newest = [name for name in load_builds(ROOT) if name.startswith("cpu-")][-1]
    measured = [newest if word == DEFAULT_BUILD else word for word in ARGUMENTS]
    assert left == f"arguments={json.dumps(measured)}\nhead={HEAD}\n"


@pytest.mark.parametrize(
    ("body", "login"),
    [
        (RUN, "mallory"),
        ("@hybridwatch run $(touch pwned)", "ada"),
        ("@hybridwatch run smoke\nhead=main", "mallory"),
        (f"> {RUN}", "ada"),
    ],
)
def test_nothing_else_starts_one(hub, script, tmp_path, body, login) -> None:
    assert decide(hub, script, tmp_path, hub.asks(body, login)) == ""
    assert not (ROOT / "pwned").exists()


def measure(tmp_path: Path, arguments: list[str], status: int) -> int:
    """Run ci/measure-command.sh in a copy whose engine is a script that stores a record."""
    scripts = copy_scripts(tmp_path, status)
    wanted = {"PULL_REQUEST": "7", "ARGUMENTS": json.dumps(arguments)}
    return called(scripts / "measure-command.sh", env=os.environ | wanted).returncode


@pytest.mark.parametrize(("status", "ends"), [(0, 0), (1, 0), (2, 1)])
def test_a_run_leaves_records(tmp_path, status, ends) -> None:
    assert measure(tmp_path, [*ARGUMENTS, "a b; c"], status) == ends
    (said,) = said_in(tmp_path)
    assert said == [*ARGUMENTS, "a b; c", "--line", "pr-7", "--results", "bundle"], "each is one"
    assert (tmp_path / "bundle" / "pull-request.txt").read_text() == "7\n"
    assert len(list((tmp_path / "bundle" / "records").rglob("*.json"))) == 1
    assert not (tmp_path / "bundle" / "bisect.json").exists()


def test_a_search_leaves_its_answer_too(tmp_path) -> None:
    words = ["bisect", "smoke/dummy-run", "--good", "0.27.1", "--bad", "0.32.0"]
    assert measure(tmp_path, words, 1) == 0
    assert (tmp_path / "bundle" / "bisect.json").read_text() == "{}\n"


@pytest.mark.parametrize("verb", sorted(verbs().keys() - {"run", "bisect"}))
def test_no_other_verb_is_run(tmp_path, verb) -> None:
    assert measure(tmp_path, [verb], 0) == 2
    assert not (tmp_path / "said.txt").exists()


@pytest.fixture
def told(hub, script, tmp_path) -> Callable[..., tuple[RequestState, str]]:
    """Ask, and run ci/show-answer.sh on a bundle; gives how the command stands and the comment."""
    event = hub.asks(RUN)
    decide(hub, script, tmp_path, event)

    def tell(bundle: Path, status: int = 0, **changes: str) -> tuple[RequestState, str]:
        given = {
            "RUN": "42",
            "COMMENT": str(event["comment"]["id"]),
            "PULL_REQUEST": str(NUMBER),
            "OUTCOME": "success",
            "BUNDLE": str(bundle),
        }
        done = script(hub, "show-answer.sh", **given | changes)
        assert done.returncode == status, done.stderr
        (body,) = hub.bodies()
        (one,) = queue_in(body).asked
        return one.state, body

    return tell


def test_what_was_measured_is_reported_below_the_queue(told, measured) -> None:
    state, body = told(bundle_of(measured))
    assert state is RequestState.DONE
    assert "A contract broke" in body
    state, body = told(bundle_of(measured), OUTCOME="failure")
    assert state is RequestState.FAILED
    assert "it did not come to its end: see its log" in body


def test_what_a_search_found_is_reported(told, measured) -> None:
    (measured / "bisect.json").write_text(json.dumps(answer()))
    bundle = bundle_of(measured)
    with zipfile.ZipFile(bundle, "a") as packed:
        packed.write(measured / "bisect.json", "bisect.json")
    state, body = told(bundle)
    assert state is RequestState.DONE
    assert "became worse (-8.1%; with 95 % between -9.5% and -6.7%) with " in body


@pytest.mark.long("three forged answers, each by the script of the job itself")
def test_what_the_untrusted_half_left_is_not_trusted(told, measured, tmp_path) -> None:
    other = bundle_of(measured, number=8)
    assert told(other)[0] is RequestState.FAILED
    with zipfile.ZipFile(other, "a") as packed:
        packed.writestr("../../.venv/bin/hybridwatch", "#!/bin/sh\n")
    state, body = told(other)
    assert state is RequestState.FAILED
    assert "what it left is not what a measurement leaves" in body
    state, body = told(tmp_path / "none", RUN="43")
    assert (state, "it left nothing" in body) == (RequestState.FAILED, True)


def test_a_bundle_that_is_too_large_ends_the_command(told, tmp_path) -> None:
    large = tmp_path / "large.zip"
    with large.open("wb") as file:
        file.truncate(68 * 2**20)
    state, body = told(large)
    assert (state, "more than 65 MiB" in body) == (RequestState.FAILED, True)


def test_whatever_goes_wrong_ends_the_command(told, measured, tmp_path) -> None:
    """Planted: a client of GitHub that cannot list what the run left."""
    (tmp_path / "bin" / "gh").write_text("#!/bin/sh\nexit 4\n")
    state, body = told(bundle_of(measured), status=4)
    assert (state, "could not be shown" in body) == (RequestState.FAILED, True)


# The workflow.


def test_the_job_that_runs_the_pull_requests_code_has_no_right_and_no_secret() -> None:
    assert "ref: ${{ needs.decide.outputs.head }}" in MEASURE
    assert "write" not in MEASURE
    assert "token" not in MEASURE.lower()
    assert "secrets." not in TEXT
    assert "actions/cache" not in TEXT
    for trusted in (DECIDE, TELL):
        assert "ref:" not in trusted, "the default branch is what it checks out"
        assert "make bot" in trusted
    assert "types: [created]" in TEXT


def test_no_text_of_a_comment_is_put_into_a_script() -> None:
    where = [line.strip() for line in TEXT.splitlines() if "comment.body" in line]
    assert len(where) == 1
    assert where[0].startswith("if: ")
    assert "run: ${{" not in TEXT


def test_no_job_that_may_write_takes_what_another_left_in_a_cache() -> None:
    """A command's job runs beside the default branch, so strange code may fill its caches."""
    for workflow in WORKFLOWS.glob("*.yml"):
        text = workflow.read_text()
        assert not ("actions/cache" in text and ": write" in text), workflow.name
