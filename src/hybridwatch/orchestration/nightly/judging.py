"""Stores verdicts of reports, and reads them back."""

from pathlib import Path

from hybridwatch.analysis.replay import (
    VerdictReplay,
    changes_between,
    deviations_between,
    noise_in,
)
from hybridwatch.analysis.report import Terms
from hybridwatch.analysis.rules_version import present_tools
from hybridwatch.analysis.wording.report_json import to_json
from hybridwatch.history.judge import Chosen, JudgedReport, judge_on
from hybridwatch.records.store import (
    StoredVerdict,
    find_results,
    read_side,
    read_verdict,
    refer,
    write_verdict,
)


def save(results: Path, judged: JudgedReport) -> Path:
    """Store a verdict with all it takes to have it again; gives its path."""
    baseline, contender = (
        refer(results, chosen.record, chosen.run.id, chosen.side)
        for chosen in (judged.baseline, judged.contender)
    )
    verdict = StoredVerdict(
        baseline=baseline,
        contender=contender,
        parameters=judged.parameters,
        tools=present_tools(),
        report=to_json(judged.report),
    )
    return write_verdict(results, verdict, judged.contender.run)


def replay(path: Path, results: Path) -> tuple[JudgedReport, VerdictReplay]:
    """Judge a stored verdict's records, below ``results`` or around it, again, and compare."""
    verdict, untouched = read_verdict(path)
    folder = find_results(path, results)
    alterations = [] if untouched else [f"{path} was altered after it was written."]
    sides = [read_side(folder, reference) for reference in (verdict.baseline, verdict.contender)]
    alterations += [
        f"{side.record} was altered after it was judged; records never change: restore it."
        for side in sides
        if not side.as_judged
    ]
    baseline, contender = (Chosen(side.record, side.run, side.index) for side in sides)
    terms = Terms(
        noise=noise_in(verdict.parameters),
        across_testbeds=bool(verdict.parameters.get("across_testbeds")),
    )
    judged = judge_on(terms, baseline, contender)
    stored = {**verdict.report, "parameters": verdict.parameters}
    again = {**to_json(judged.report), "parameters": judged.parameters}
    return judged, VerdictReplay(
        deviations=deviations_between(stored, again),
        alterations=tuple(dict.fromkeys(alterations)),
        changes=changes_between(verdict.tools, present_tools()),
    )
