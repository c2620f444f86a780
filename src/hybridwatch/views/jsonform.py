"""A report as JSON: the stable form that ``--json`` prints, documented in ``docs/json.md``.

Numbers are numbers in base units, absent ones are null; there is no NaN. A field may be added
within a schema version; none is renamed, removed or given another meaning.
"""

import math
from dataclasses import asdict
from typing import Any, Final

from hybridwatch.analysis.control import Control
from hybridwatch.analysis.findings import Findings
from hybridwatch.analysis.gate import GateResult
from hybridwatch.analysis.sequential import level_of
from hybridwatch.analysis.verdict import (
    Attribution,
    Comparison,
    Flip,
    Interval,
    Report,
    Side,
    Summary,
)
from hybridwatch.record.identity import EngineBuild, Testbed
from hybridwatch.record.run import Answer, Looks

REPORT_SCHEMA: Final = 1


def to_json(report: Report) -> dict[str, Any]:
    """Turn a report into plain dictionaries, lists, numbers and texts."""
    return {
        "schema_version": REPORT_SCHEMA,
        "scenario": {
            "id": report.scenario.id,
            "version": report.scenario.version,
            "digest": report.scenario.digest,
            "fix": report.scenario.fix,
        },
        "baseline": _side(report.baseline),
        "contender": _side(report.contender),
        "bad_news": bool(report.bad_news),
        "tests": report.tests,
        "false_discovery_rate": report.false_discovery_rate,
        "looks": _looks(report.looks),
        "comparisons": [_comparison(comparison) for comparison in report.comparisons],
        "differences": list(report.differences),
        "failures": list(report.failures),
        "attribution": _attribution(report.attribution),
    }


def gate_to_json(result: GateResult, report: Report) -> dict[str, Any]:
    """Turn a gate's answer and the report behind it into plain values."""
    return {
        "schema_version": REPORT_SCHEMA,
        "passed": result.passed,
        "reasons": list(result.reasons),
        "warnings": list(result.warnings),
        "report": to_json(report),
    }


def findings_to_json(result: GateResult, findings: Findings) -> dict[str, Any]:
    """Turn a gate's answer over many scenarios and what it is about into plain values."""
    return {
        "schema_version": REPORT_SCHEMA,
        "passed": result.passed,
        "reasons": list(result.reasons),
        "warnings": list(result.warnings),
        "absent": [{"scenario": one.scenario, "reason": one.reason} for one in findings.absent],
        "reports": [to_json(report) for report in findings.reports],
    }


def _looks(looks: Looks | None) -> dict[str, Any] | None:
    if looks is None:
        return None
    return {
        "planned": list(looks.planned),
        "made": list(looks.made),
        "level": level_of(looks),
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "run_id": side.run_id,
        "build": _build(side.build),
        "testbed": _testbed(side.testbed),
    }


def _testbed(testbed: Testbed) -> dict[str, Any]:
    told = {
        "id": testbed.id,
        "cpu_model": testbed.cpu_model,
        "cores": testbed.cores,
        "memory_bytes": testbed.memory_bytes,
        "kernel": testbed.kernel,
        "gpus": list(testbed.gpus),
        "driver": testbed.driver,
        "cuda": testbed.cuda,
    }
    if not testbed.gpus:
        # Verdicts stored before these were known are to be had again to the letter.
        return told
    memory, limits = list(testbed.gpu_memory_bytes), list(testbed.gpu_power_limits_w)
    return told | {"gpu_memory_bytes": memory, "gpu_power_limits_w": limits}


def _build(build: EngineBuild) -> dict[str, Any]:
    # Left out where it is not known: verdicts stored before are to be had again to the letter.
    code = {"code_digest": build.code_digest} if build.code_digest else {}
    return code | {
        "label": build.label,
        "name": build.name,
        "release": build.release,
        "accelerator": build.accelerator,
        "distribution": build.distribution,
        "lock_digest": build.lock_digest,
        "wheel_digest": build.wheel_digest,
        "fixes": {fix: state.value for fix, state in sorted(build.fixes.items())},
        "flags": dict(sorted(build.flags.items())),
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    metric = comparison.metric
    return {
        "metric": metric.id,
        "statistic": comparison.statistic,
        "unit": metric.unit.value,
        "better": metric.better.value,
        "kind": metric.kind.value,
        "margin": metric.margin,
        "verdict": comparison.verdict.value,
        "bad_news": comparison.verdict.is_bad_news,
        "test": comparison.test,
        "design": comparison.design.value,
        "assumption": comparison.assumption,
        "baseline": _summary(comparison.baseline),
        "contender": _summary(comparison.contender),
        "effect": _number(comparison.effect),
        "interval": _interval(comparison.interval),
        "pairs": comparison.pairs,
        "relevance": comparison.relevance,
        "noise": _number(comparison.noise),
        "churn": _number(comparison.churn),
        "p_value": _number(comparison.p_value),
        "p_adjusted": _number(comparison.p_adjusted),
        "p_holm": _number(comparison.p_holm),
        "equivalence_p": _number(comparison.equivalence_p),
        "minimum_detectable_effect": _number(comparison.minimum_detectable_effect),
        "trials_needed": comparison.trials_needed,
        "doubts": list(comparison.doubts),
        "flips": [_flip(flip) for flip in comparison.flips],
    }


def _attribution(attribution: Attribution | None) -> dict[str, Any] | None:
    if attribution is None:
        return None
    return {
        "metric": attribution.metric,
        "effect": _number(attribution.effect),
        "factors": [
            {
                "name": factor.name,
                "effect": _number(factor.effect),
                "interval": _interval(factor.interval),
                "share": _number(factor.share),
                "moved": factor.moved,
            }
            for factor in attribution.factors
        ],
        "movers": [factor.name for factor in attribution.movers],
    }


def _summary(summary: Summary | None) -> dict[str, Any] | None:
    if summary is None:
        return None
    return {
        "center": _number(summary.center),
        "n": summary.n,
        "values": [_number(value) for value in summary.values],
    }


def _interval(interval: Interval | None) -> dict[str, Any] | None:
    if interval is None:
        return None
    return {
        "low": _number(interval.low),
        "high": _number(interval.high),
        "confidence": interval.confidence,
    }


def _flip(flip: Flip) -> dict[str, Any]:
    return {
        "task": flip.baseline.task,
        "task_version": flip.baseline.task_version,
        "doc_id": flip.baseline.doc_id,
        "doc_hash": flip.baseline.doc_hash,
        "prompt": flip.baseline.prompt,
        "target": flip.baseline.target,
        "baseline": _answer(flip.baseline),
        "contender": _answer(flip.contender),
    }


def _answer(answer: Answer) -> dict[str, Any]:
    return {"response": answer.response, "correct": answer.correct}


def _number(value: float | None) -> float | None:
    # JSON has no word for NaN or infinity; Python would write one all the same.
    return value if value is not None and math.isfinite(value) else None


def control_to_json(control: Control) -> dict[str, Any]:
    """One control of a scenario; fields as in ``docs/json.md``."""
    return {**asdict(control), "kind": control.kind.value}
