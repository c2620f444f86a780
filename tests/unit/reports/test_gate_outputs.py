"""A gate's answer for GitHub Actions, and as JUnit XML, read back by another reader."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hybridwatch.analysis.change_review import Absent, ChangeReview
from hybridwatch.analysis.report import build_report
from hybridwatch.records.run import Phase
from hybridwatch.records.store import write_run
from hybridwatch.reports.github_actions import MOST, annotations, without_commands
from hybridwatch.reports.junit import to_junit
from tests.builders import RECENT, a_build, a_comparison, noisy, with_failures
from tests.command_line import run_verb
from tests.situations import SITUATIONS

COMMANDS = {"add-mask", "debug", "echo", "error", "group", "notice", "set-env", "set-output"}
COMMANDS |= {"stop-commands", "warning"}
PLANTED = "x\n::error::planted\r\n::add-mask::a %0A::set-env name=PATH::/tmp ##[set-env name=A]b"
GOOD = {"contract.padded_rows_prefilling": (0.0,), "tpot": noisy(1.0, 7, 0.01)}
BAD = GOOD | {"contract.padded_rows_prefilling": (4.0,)}
ALLOWED = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name", "time", "tests", "failures", "errors", "skipped"},
    "testcase": {"name", "time", "classname"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "skipped": {"type", "message"},
    "system-out": set(),
}
"""Of what Jenkins' xUnit plugin takes (``junit-10.xsd``), the elements and attributes used here."""


@dataclass(frozen=True)
class Command:
    name: str
    title: str
    text: str


def runner(lines: Iterable[str]) -> list[Command]:
    """Obey lines as GitHub's runner does: ``::`` begins a line, ``##[`` stands anywhere."""
    obeyed: list[Command] = []
    stopped = ""
    for line in lines:
        found = _second_form(line.lstrip(), stopped) or _first_form(line, stopped)
        if found is None:
            continue
        if stopped:
            stopped = stopped if found.name != stopped else ""
        elif found.name == "stop-commands":
            stopped = found.text
        else:
            obeyed.append(found)
    assert not stopped, "commands must be allowed again for the next step"
    return obeyed


def _second_form(line: str, stopped: str) -> Command | None:
    info, colons, data = line.removeprefix("::").partition("::")
    name, _, properties = info.partition(" ")
    if not line.startswith("::") or not colons or name not in {*COMMANDS, stopped}:
        return None
    pairs = dict(pair.split("=", 1) for pair in properties.split(",") if "=" in pair)
    assert set(pairs) <= {"title"}, pairs
    return Command(name, _undone(pairs.get("title", "")), _undone(data))


def _first_form(line: str, stopped: str) -> Command | None:
    _, mark, rest = line.partition("##[")
    info, end, data = rest.partition("]")
    name = info.partition(" ")[0]
    known = bool(mark and end) and name in {*COMMANDS, stopped}
    return Command(name, "", data) if known else None


def _undone(text: str) -> str:
    for mark, written in (("\r", "%0D"), ("\n", "%0A"), (":", "%3A"), (",", "%2C"), ("%", "%25")):
        text = text.replace(written, mark)
    return text


@pytest.mark.parametrize("situation", SITUATIONS)
def test_there_is_an_error_exactly_where_the_gate_stops(situation) -> None:
    findings = ChangeReview((SITUATIONS[situation](),))
    obeyed = runner(annotations(findings))
    assert ("error" in {one.name for one in obeyed}) is not findings.gate.passed
    assert ("warning" in {one.name for one in obeyed}) >= bool(
        findings.gate.passed and findings.gate.warnings
    )


def test_what_is_missing_is_named_and_left_out_things_warn() -> None:
    absent, left_out = Absent("smoke/x", "not measured"), Absent("smoke/y", "no baseline")
    assert runner(annotations(ChangeReview((), (absent,), left_out=(left_out,)))) == [
        Command("error", "hybridwatch: smoke/x", "not measured"),
        Command("warning", "hybridwatch: smoke/y", "no baseline"),
    ]


def test_a_gate_that_judged_nothing_is_an_error() -> None:
    (one,) = runner(annotations(ChangeReview(())))
    assert (one.name, one.title) == ("error", "hybridwatch")


def test_more_than_github_shows_are_counted() -> None:
    absent = tuple(Absent(f"smoke/{number}", "gone") for number in range(30))
    left_out = (Absent("smoke/y", "no baseline"),)
    found = runner(annotations(ChangeReview((), absent, left_out=left_out)))
    errors = [one for one in found if one.name == "error"]
    assert (len(errors), errors[-1].text) == (MOST, f"and {30 - MOST + 1} more")
    assert found[-1].name == "warning"


def test_a_planted_command_is_text_in_an_annotation() -> None:
    absent = Absent(PLANTED, PLANTED)
    (one,) = runner(annotations(ChangeReview((), (absent,))))
    shown = " ".join(PLANTED.split())
    assert (one.title, one.text) == (f"hybridwatch: {shown}", shown)


def test_commands_are_stopped_with_a_word_that_nobody_knows() -> None:
    lines = PLANTED.splitlines()
    assert {one.name for one in runner(lines)} == {"error", "add-mask"}
    assert runner(without_commands(lines)) == []
    assert next(without_commands([])) != next(without_commands([]))


@pytest.fixture
def hostile(tmp_path) -> Path:
    """A stored run whose texts are commands."""
    good = {"tpot": noisy(1.0, 7, 0.01)}
    builds = (a_build(), a_build("::error::b"))
    run = replace(a_comparison(good, {}), started_at=RECENT, builds=builds)
    run = with_failures(run, 1, Phase.PERFORMANCE, 7, reason=f"::error::r {PLANTED}")
    trials = tuple(
        replace(trial, failure=replace(trial.failure, log_tail=PLANTED)) if trial.failure else trial
        for trial in run.trials
    )
    return Path(str(write_run(tmp_path / "results", replace(run, trials=trials))))


def test_a_step_says_only_what_the_gate_found(hostile, tmp_path, monkeypatch) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("earlier\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    answer = run_verb("gate", hostile, "--github", status=1)
    obeyed = runner(answer.stdout.splitlines())
    assert [one.name for one in obeyed] == ["error"]
    assert "r x ::error::planted" in obeyed[0].text
    text = summary.read_text()
    assert text.startswith("earlier\n**")
    assert "planted" in text


def test_without_the_flag_nothing_is_a_command_of_ours(hostile, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    assert "stop-commands" not in run_verb("gate", hostile).output
    assert not (tmp_path / "summary.md").exists()


def test_a_job_without_a_summary_gets_annotations_alone(hostile, monkeypatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    answer = run_verb("gate", hostile, "--github")
    assert [one.name for one in runner(answer.stdout.splitlines())] == ["error"]


def test_a_summary_that_cannot_be_written_is_named(hostile, monkeypatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", f"{hostile}/summary.md")
    answer = run_verb("gate", hostile, "--github", status=2)
    assert f"GITHUB_STEP_SUMMARY: {hostile}/summary.md: cannot be written" in answer.stderr


def test_json_and_commands_do_not_share_standard_output(hostile) -> None:
    answer = run_verb("gate", hostile, "--github", "--json")
    assert (answer.exit_code, answer.stdout) == (2, "")


def test_markdown_is_what_the_summary_gets(hostile, tmp_path, monkeypatch) -> None:
    file, summary = tmp_path / "gate.md", tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    run_verb("gate", hostile, "--github", "--markdown", file)
    assert file.read_text() == summary.read_text()


def outcomes(written: bytes) -> dict[str, str]:
    """What became of each test, by its name."""
    document = ElementTree.fromstring(written)  # noqa: S314 (we wrote it)
    for element in document.iter():
        assert set(element.keys()) <= ALLOWED[element.tag]
    tests = [test for suite in document for test in suite]
    assert [suite.tag for suite in document] == ["testsuite"] * len(document)
    assert int(document.get("tests", "")) == len(tests)
    return {f"{test.get('name')}": next((child.tag for child in test), "passed") for test in tests}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_test_fails_exactly_where_the_gate_stops(situation) -> None:
    findings = ChangeReview((SITUATIONS[situation](),))
    found = outcomes(to_junit(findings))
    assert ({"failure", "error"} & set(found.values()) == set()) is findings.gate.passed


def test_what_is_worse_within_the_margin_passes_with_a_warning() -> None:
    written = to_junit(ChangeReview((SITUATIONS["worse_within"](),)))
    assert set(outcomes(written).values()) == {"system-out"}
    told = [one.text for one in ElementTree.fromstring(written).iter("system-out")]  # noqa: S314
    assert told[0] == (
        "warning: accuracy.recall: worse within margin, 100.0 % -> 99.2 %, "
        "-0.8 points (-1.9 to -0.2)"
    )


def test_each_comparison_is_a_test_and_says_what_changed() -> None:
    findings = ChangeReview((build_report(a_comparison(GOOD, BAD)),))
    written = to_junit(findings)
    assert outcomes(written) == {
        "contract.padded_rows_prefilling": "failure",
        "tpot median": "passed",
    }
    (failure,) = ElementTree.fromstring(written).iter("failure")  # noqa: S314 (we wrote it)
    assert failure.get("type") == "regression"
    assert "0 -> 4" in failure.get("message", "")


def test_what_is_missing_is_an_error_and_what_stops_nothing_is_skipped() -> None:
    absent = Absent("smoke/x", "not measured since\nMonday", "host \x1b[2J<&\x00")
    assert outcomes(to_junit(ChangeReview((), (absent,)))) == {"was measured": "error"}
    assert outcomes(to_junit(ChangeReview((), (), left_out=(absent,)))) == {
        "was measured": "skipped",
        "anything was judged": "error",
    }


def test_the_verb_writes_the_file_next_to_its_answer(tmp_path) -> None:
    run = replace(a_comparison(GOOD, BAD), started_at=RECENT)
    record, file = str(write_run(tmp_path, run)), tmp_path / "gate.xml"
    answer = run_verb("gate", record, "--junit", file)
    assert (answer.exit_code, outcomes(file.read_bytes())["tpot median"]) == (1, "passed")
    nowhere = f"{record}/gate.xml"
    answer = run_verb("gate", record, "--junit", nowhere)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert f"{nowhere}: cannot be written: " in answer.stderr
