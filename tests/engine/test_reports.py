"""Scripts of lab/docs/reports.md that start no engine, on the releases that are installed."""

import os
import subprocess

import pytest

from hybridwatch.engines.builds import parse_label
from tests.reports import PAGE, Report, read_reports

REPORTS = {report.finding: report for report in read_reports(PAGE.read_text(encoding="utf-8"))}
RUNS = [
    *((finding, build) for finding in (7, 19) for build in ("cpu-0.27.1", "cpu-0.31.0")),
    (24, "cpu-0.32.0"),
]


def check_shown(report: Report, said: str) -> None:
    """Fail where the script says anything else than its report."""
    assert said.endswith(report.shown), (
        f"{report.script.name} does not show the fault of finding {report.finding}. If the release "
        f"has mended it, say so in lab/docs/reports.md and docs/findings.md. Found: {said}"
    )


@pytest.mark.engine
@pytest.mark.parametrize(("finding", "build"), RUNS)
def test_a_script_shows_what_its_report_says(finding, build, tmp_path):
    """Without hybridwatch's plugin, and in a folder that has nothing of ours."""
    spec = parse_label(build).spec
    if not spec.interpreter.exists():
        pytest.skip(f"{build} is not installed")
    alone = {"VLLM_PLUGINS": "", "VLLM_LOGGING_LEVEL": "ERROR", "PYTHONPATH": ""}
    done = subprocess.run(
        [str(spec.interpreter), str(REPORTS[finding].script)],
        cwd=tmp_path, env={**os.environ, **alone},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    check_shown(REPORTS[finding], done.stdout)


def test_a_script_that_shows_no_fault_is_found():
    report = REPORTS[7]
    mended = report.shown.replace("after [3]", "after [1]", 1)
    assert mended != report.shown
    with pytest.raises(AssertionError, match=r"07\.py does not show the fault of finding 7"):
        check_shown(report, mended)
