"""A gate's answer as JUnit XML, read back by another reader than its writer."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from hybridwatch.analysis.change_review import Absent, ChangeReview
from hybridwatch.analysis.report import build_report
from hybridwatch.cli.main import cli
from hybridwatch.records.store import write_run
from hybridwatch.reports.junit import to_junit
from tests.builders import RECENT, a_comparison, noisy
from tests.situations import SITUATIONS

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


def test_the_verb_writes_the_file_beside_its_answer(tmp_path) -> None:
    run = replace(a_comparison(GOOD, BAD), started_at=RECENT)
    record, file = str(write_run(tmp_path, run)), tmp_path / "gate.xml"
    answer = CliRunner().invoke(cli, ["gate", record, "--junit", str(file)])
    assert (answer.exit_code, outcomes(file.read_bytes())["tpot median"]) == (1, "passed")
    nowhere = f"{record}/gate.xml"
    answer = CliRunner().invoke(cli, ["gate", record, "--junit", nowhere])
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert f"{nowhere}: cannot be written: " in answer.stderr
