"""A gate's answer as JUnit XML: most systems of continuous integration show it as tests.

There is no standard; this is the form that Jenkins, GitLab and Buildkite read, the strictest by its
schema (``junit-10.xsd`` of Jenkins' xUnit plugin), written by ``junitparser`` (typed, alive, needs
nothing but Python).
"""

from collections.abc import Iterable, Iterator

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from hybridwatch.analysis.change_review import Absent, ChangeReview
from hybridwatch.analysis.detection import KnownBad, complaints_about
from hybridwatch.analysis.gate import consequence
from hybridwatch.analysis.policy import Action, Policy
from hybridwatch.analysis.verdict import Comparison, Report, Verdict
from hybridwatch.analysis.wording.numbers import name_of
from hybridwatch.reports.escape import one_line
from hybridwatch.reports.sentence import headline, write_line

_CLASS = "hybridwatch"
_NOT_COMPARABLE = Verdict.NOT_COMPARABLE


class _Document(JUnitXml):
    """A root without the count of skipped tests, which Jenkins' schema has for suites alone."""

    skipped = None


def to_junit(findings: ChangeReview) -> bytes:
    """Write what a gate judged, as XML in UTF-8.

    Each report is a suite with a test for each of its comparisons; what is missing and each
    known-bad control are suites as well. A test fails exactly where the gate stops; what the gate
    merely warns of passes and says so in its output; what could not be compared is skipped.
    """
    document = _Document("hybridwatch gate")
    for report, name in zip(findings.reports, findings.names, strict=True):
        document.add_testsuite(_suite(name, _list_tests(report, findings.policy)))
    for control in findings.controls:
        document.add_testsuite(_suite(control.scenario, [_of_control(control)]))
    for absent in findings.absent:
        failed = Error(one_line(absent.reason), "missing")
        document.add_testsuite(_suite(absent.place, [_of_absent(absent, failed)]))
    for absent in findings.left_out:
        skipped = Skipped(one_line(absent.reason))
        document.add_testsuite(_suite(absent.place, [_of_absent(absent, skipped)]))
    if not (findings.reports or findings.controls or findings.absent):
        nothing = _test("gate", "anything was judged", Error("Nothing was judged.", "missing"))
        document.add_testsuite(_suite("gate", [nothing]))
    document.update_statistics()  # type: ignore[no-untyped-call]
    written: bytes = document.tostring()  # type: ignore[no-untyped-call]
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + written + b"\n"


def _suite(name: str, tests: Iterable[TestCase]) -> TestSuite:
    suite = TestSuite(one_line(name))
    suite.add_testcases(list(tests))
    return suite


def _test(scenario: str, name: str, result: Error | Failure | Skipped | None) -> TestCase:
    place = one_line(f"{_CLASS}.{scenario.replace('/', '.')}")
    test = TestCase(one_line(name), place, 0.0)
    if result is not None:
        test.result = result
    return test


def _list_tests(report: Report, policy: Policy) -> Iterator[TestCase]:
    for comparison in report.comparisons:
        action = consequence(comparison, report, policy)
        test = _test(report.scenario.id, name_of(comparison), _result(comparison, action))
        if action is Action.WARN:
            test.system_out = one_line(f"warning: {write_line(comparison)}")
        yield test
    if all(one.verdict is _NOT_COMPARABLE for one in report.comparisons):
        failed = Failure(one_line(headline(report)), _NOT_COMPARABLE.value)
        yield _test(report.scenario.id, "anything could be compared", failed)


def _result(comparison: Comparison, action: Action) -> Failure | Skipped | None:
    if action is Action.BLOCK:
        return Failure(one_line(write_line(comparison)), comparison.verdict.value)
    if comparison.verdict is _NOT_COMPARABLE:
        return Skipped(one_line("; ".join(comparison.doubts)) or _NOT_COMPARABLE.value)
    return None


def _of_control(control: KnownBad) -> TestCase:
    complaints = one_line("; ".join(complaints_about(control)))
    failed = Failure(complaints, control.detection.value) if complaints else None
    return _test(control.scenario, "the known bug is caught, the healthy engine is clean", failed)


def _of_absent(absent: Absent, result: Error | Skipped) -> TestCase:
    return _test(absent.scenario or "testbed", "was measured", result)
