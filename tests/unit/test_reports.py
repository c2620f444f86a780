"""Reports that a person can file with vLLM as they stand: what each has to say, and its script."""

import ast
import re
import sys
from collections.abc import Iterator

import pytest

from tests.reports import PAGE, ROOT, Report, read_reports

TEXT = PAGE.read_text(encoding="utf-8")
REPORTS = read_reports(TEXT)
UNKNOWN = {
    int(number)
    for number in re.findall(
        r"^\| (\d+) \|.*\| unknown \|$",
        (ROOT / "docs" / "findings.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
}
PARTS = ("**Breaks**", "**Releases**", "**Expected**", "**Likely line**", "**A fix**")
INSTALLED = {"vllm", "torch", "transformers"}
"""What a Python that has vLLM has."""
MOST_LINES = 45
MOST_WORDS = 1400


def find_gaps(report: Report, script: str) -> Iterator[str]:
    """Say what a report lacks, or needs that vLLM's developers do not have."""
    yield from (f"no {part}" for part in PARTS if part not in report.text)
    if report.finding not in UNKNOWN:
        yield f"finding {report.finding} is not one that is unknown upstream"
    if not report.shown:
        yield "no output"
    if len(script.splitlines()) > MOST_LINES:
        yield f"{len(script.splitlines())} lines of script, at most {MOST_LINES}"
    for name in sorted(find_imports(script) - INSTALLED - sys.stdlib_module_names):
        yield f"imports {name}"


def find_imports(script: str) -> set[str]:
    """Give the packages that a script imports."""
    nodes = list(ast.walk(ast.parse(script)))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.title[:40])
def test_a_report_can_be_filed_as_it_stands(report: Report) -> None:
    assert list(find_gaps(report, report.script.read_text(encoding="utf-8"))) == []


def test_every_unknown_finding_has_one_report_and_every_script_is_in_one() -> None:
    assert [report.finding for report in REPORTS] == sorted(UNKNOWN)
    scripts = sorted((ROOT / "lab" / "docs" / "reports").glob("*.py"))
    assert [report.script for report in REPORTS] == scripts


def test_the_page_is_short() -> None:
    assert len(TEXT.split()) <= MOST_WORDS


@pytest.mark.parametrize(
    ("old", "new", "gap"),
    [
        ("**A fix**", "**Fix**", "no **A fix**"),
        ("\nFinding [", "\nSee [9", "finding 0 is not one that is unknown upstream"),
        ("```text\n", "```\n", "no output"),
    ],
)
def test_a_gap_in_a_report_is_found(old: str, new: str, gap: str) -> None:
    assert old in TEXT
    report = read_reports(TEXT.replace(old, new))[0]
    assert list(find_gaps(report, "import vllm\n")) == [gap]


@pytest.mark.parametrize(
    ("script", "gap"),
    [
        ("import vllm\nimport json\nfrom hybridwatch.system import home\n", "imports hybridwatch"),
        ("import vllm\n" * 46, "46 lines of script, at most 45"),
    ],
)
def test_a_script_that_is_long_or_needs_more_than_vllm_is_found(script: str, gap: str) -> None:
    assert list(find_gaps(REPORTS[0], script)) == [gap]
