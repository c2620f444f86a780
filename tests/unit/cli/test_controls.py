"""``hybridwatch controls`` and ``oracle`` on made-up runs: what is asked, told and refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result

from hybridwatch.cli import controls
from hybridwatch.errors import BuildError, EngineError
from hybridwatch.measurement.session_request import Progress
from hybridwatch.metrics import WRONG_TOKENS
from hybridwatch.records.run import Phase
from tests.builders import BASELINE, CONTENDER, NEWER, Trials, a_run
from tests.checkout import make_checkout
from tests.command_line import run_verb
from tests.curves import a_swept_run, even, slower

SWEEPS = Path(__file__).parents[3] / "scenarios" / "curated"

BUILD = ("--build", "tiny-1.0")
FIX = "padded-rows-prefilling"
PADDED = "contract.padded_rows_prefilling"
HEALTHY: dict[str, Trials] = {
    PADDED: (0.0,) * 3,
    WRONG_TOKENS: (0.0,) * 3,
    "accuracy.recall": "1" * 200,
}
BAD: dict[str, Trials] = HEALTHY | {PADDED: (4.0,) * 3, WRONG_TOKENS: (9.0,) * 3}
UNEQUAL: dict[str, Trials] = HEALTHY | {WRONG_TOKENS: (0.0, 1.0, 0.0)}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch) -> Path:
    """A checkout with two scenarios, and a build that counts as installed and has the fix."""
    make_checkout(tmp_path, "smoke/padded", "reported/again")
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(tmp_path))
    monkeypatch.setattr(controls, "require_installed", lambda _: None)
    monkeypatch.setattr(controls, "healthy_label", lambda build, *_: build)
    return tmp_path


@pytest.fixture
def requests(checkout, monkeypatch):
    """Answer sessions with a good run; keeps what was asked for."""
    return answer_with(monkeypatch, HEALTHY, BAD, HEALTHY)


def answer_with(monkeypatch, *sides):
    asked = []

    def run_session(request):
        asked.append(request)
        request.on_progress(Progress(1, 2, "half way"))
        return a_run(*sides, builds=(BASELINE, CONTENDER, BASELINE))

    monkeypatch.setattr(controls, "run_session", run_session)
    return asked


def call(*words: str, status: int | None = None) -> Result:
    return run_verb("controls", *words, env={"COLUMNS": "200"}, status=status)


def test_one_object_holds_both_controls_of_each_scenario(requests):
    result = call("smoke", "reported", *BUILD, "--json", status=0)
    told = json.loads(result.stdout)
    assert set(told) == {"controls"}
    assert [(each["scenario"], each["kind"]) for each in told["controls"]] == [
        ("smoke/padded", "known-bad"),
        ("smoke/padded", "a-a"),
        ("reported/again", "known-bad"),
        ("reported/again", "a-a"),
    ]
    assert told["controls"][0] == {
        "scenario": "smoke/padded",
        "fix": FIX,
        "kind": "known-bad",
        "ok": True,
        "metric": PADDED,
        "detail": f"{PADDED} 0 -> 4, 3 of 3 seeds; {WRONG_TOKENS} 0 -> 9, 3 of 3 seeds",
    }
    assert told["controls"][1]["detail"].startswith("nothing differs: ")
    assert "[1/2] half way" in result.stderr
    assert "smoke/padded: padded-rows-prefilling" in result.stderr


def test_a_person_gets_a_table(requests):
    result = call("smoke", *BUILD, status=0)
    lines = result.stdout.splitlines()
    assert any("known-bad" in line and " ok " in line for line in lines)
    assert any("a-a" in line and " ok " in line for line in lines)
    assert "[1/2] half way" in result.stdout
    assert lines[-1] == "1 of 1 bug caught, the healthy engine clean."


@pytest.mark.parametrize(
    ("sides", "ok"),
    [
        ((HEALTHY, HEALTHY, HEALTHY), [False, True]),
        ((HEALTHY, BAD, UNEQUAL), [True, False]),
        ((BAD, BAD, BAD), [False, False]),
    ],
)
def test_one_control_that_is_not_ok_is_status_1(checkout, monkeypatch, sides, ok):
    answer_with(monkeypatch, *sides)
    result = call("smoke", *BUILD, "--json", status=1)
    assert [each["ok"] for each in json.loads(result.stdout)["controls"]] == ok
    call("smoke", *BUILD, status=1)
    told = call("smoke", *BUILD).stdout
    assert "not ok" in told
    assert ("0 of 1 bug caught" in told, "NOT clean" in told) == (not ok[0], not ok[1])


def test_a_good_scenario_does_not_make_up_for_a_bad_one(checkout, monkeypatch):
    runs = [(HEALTHY, BAD, HEALTHY), (HEALTHY, HEALTHY, HEALTHY)]
    builds = (BASELINE, CONTENDER, BASELINE)
    monkeypatch.setattr(controls, "run_session", lambda _: a_run(*runs.pop(), builds=builds))
    call(*BUILD, status=1)
    assert runs == []


def test_every_scenario_is_run_against_the_build_the_build_without_its_fix_and_itself(
    requests, checkout
):
    call(*BUILD)
    assert [request.scenario.id for request in requests] == ["reported/again", "smoke/padded"]
    for request in requests:
        assert [side.label for side in request.sides] == ["tiny-1.0", f"tiny-1.0~{FIX}", "tiny-1.0"]
        assert request.phases == {Phase.CONTRACT, Phase.ACCURACY}, "nothing is timed"
        assert request.models == checkout / "models"


def test_trials_and_documents_are_those_of_the_scenario_unless_said_otherwise(requests):
    call("smoke", *BUILD)
    call("smoke", *BUILD, "--seeds", "11", "--documents", "50")
    declared, asked = (request.scenario for request in requests)
    assert (declared.trials.contract, declared.accuracy.documents) == (3, 200)
    assert (asked.trials.contract, asked.accuracy.documents) == (11, 50)
    changed = {"trials": declared.trials, "accuracy": declared.accuracy}
    assert asked.model_copy(update=changed) == declared


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("smok",), '"smok" names no scenario; did you mean "smoke"?'),
        (("smoke", "--build", "tiny-2.0"), '"tiny-2.0" is no engine build'),
        (("smoke", "--seeds", "0"), "--seeds"),
        (("smoke", "--documents", "0"), "--documents"),
    ],
)
def test_wrong_calls_are_status_2_and_measure_nothing(requests, words, told):
    result = call(*BUILD, *words, status=2)
    assert told in result.stderr
    assert result.stdout == ""
    assert requests == []


def test_a_build_that_is_unfit_is_found_before_anything_is_measured(requests, monkeypatch):
    def refuse(build, *_):
        raise BuildError(f"{build}: fix does not apply")

    monkeypatch.setattr(controls, "healthy_label", refuse)
    result = call(*BUILD)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "hybridwatch: tiny-1.0: fix does not apply\n"
    assert requests == []


def test_an_engine_that_never_comes_up_is_status_1(checkout, monkeypatch):
    def die(_request):
        raise EngineError("the engine ended with status 1")

    monkeypatch.setattr(controls, "run_session", die)
    result = call("smoke", *BUILD, "--json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "hybridwatch: the engine ended with status 1" in result.stderr


def test_a_sweep_is_controlled_by_its_curve(checkout, monkeypatch):
    text = (SWEEPS / "sweep-concurrency.toml").read_text(encoding="utf-8")
    (checkout / "scenarios" / "smoke" / "swept.toml").write_text(text, encoding="utf-8")
    asked = []

    def run_session(request):
        asked.append(request)
        return replace(a_swept_run(even, slower(0.25), even), builds=(BASELINE, NEWER, BASELINE))

    monkeypatch.setattr(controls, "run_session", run_session)
    result = call("smoke/swept", *BUILD, "--json")
    told = json.loads(result.stdout)["controls"]
    assert [(one["kind"], one["fix"], one["ok"]) for one in told] == [
        ("known-bad", "slow-step", True),
        ("a-a", "slow-step", True),
    ]
    assert result.exit_code == 0
    (request,) = asked
    assert set(request.phases) == {Phase.PERFORMANCE}
    assert [side.label for side in request.sides] == ["tiny-1.0", "tiny-1.0+slow-step", "tiny-1.0"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["make", "tiny-moe", "smoke/dummy-run"], "expected tiny-memory-moe, found tiny-moe"),
        (["make", "tiny-hybrid", "smoke"], "smoke: expected one scenario, found"),
        (["make", "/", "smoke/padded-graph-rows"], "a folder with a config.json"),
        (["check", "smoke/nixl-disagg"], "run: hybridwatch oracle make tiny-hybrid smoke/nixl"),
    ],
)
def test_what_cannot_be_is_refused_with_what_was_expected(words, message) -> None:
    assert message in run_verb("oracle", *words, status=2).output
