"""A report as JSON: the stable form that ``--json`` prints, documented in ``docs/json.md``.

Numbers are numbers in base units, absent ones are null; there is no NaN. A field may be added
within a schema version; none is renamed, removed or given another meaning.
"""

import math
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from hybridwatch.analysis.cause import Cause, causes_in
from hybridwatch.analysis.change_review import Absent, ChangeReview
from hybridwatch.analysis.control import Control
from hybridwatch.analysis.death import Death, death_of
from hybridwatch.analysis.gate import GateResult
from hybridwatch.analysis.policy import STRICT, Policy
from hybridwatch.analysis.sequential import level_of
from hybridwatch.analysis.sight import KnownBad
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
from hybridwatch.report.cause_text import cause_sentence

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
        "families": [{"name": one.name, "tests": one.tests} for one in report.families],
        "false_discovery_rate": report.false_discovery_rate,
        "looks": _looks(report.looks),
        "comparisons": [_comparison(comparison) for comparison in report.comparisons],
        "differences": list(report.differences),
        "failures": list(report.failures),
        "attribution": _attribution(report.attribution),
    }


def comparison_to_json(report: Report, policy: Policy = STRICT) -> dict[str, Any]:
    """Turn a report and its causes into plain values.

    Causes are words about what the report holds. A stored verdict (``to_json``) is without them,
    since it is to be had again to the letter by a later hybridwatch with better words.
    """
    causes = [_cause(cause, report) for cause in causes_in(report, policy)]
    return {**to_json(report), "causes": causes}


def gate_to_json(
    result: GateResult,
    report: Report,
    policy: Policy = STRICT,
    age: timedelta | None = None,
    control: KnownBad | None = None,
) -> dict[str, Any]:
    """Turn a gate's answer and the report behind it into plain values.

    ``age`` is how long ago the contender's run began.
    """
    return {
        "schema_version": REPORT_SCHEMA,
        "passed": result.passed,
        "reasons": list(result.reasons),
        "warnings": list(result.warnings),
        "age_hours": _hours(age),
        "control": None if control is None else known_bad_to_json(control),
        "report": comparison_to_json(report, policy),
    }


def known_bad_to_json(control: KnownBad) -> dict[str, Any]:
    """Turn what a known-bad control showed into plain values, without its report."""
    return {
        "scenario": control.scenario,
        "lost": list(control.lost),
        "sight": control.sight.value,
        "by": [f"{found.metric.id} {found.statistic}" for found in control.by],
        "blemishes": list(control.blemishes),
    }


def findings_to_json(result: GateResult, findings: ChangeReview) -> dict[str, Any]:
    """Turn a gate's answer over many scenarios and what it is about into plain values."""
    return {
        "schema_version": REPORT_SCHEMA,
        "passed": result.passed,
        "reasons": list(result.reasons),
        "warnings": list(result.warnings),
        "judged_at": None if findings.now is None else _time(findings.now),
        "absent": [_absent(one) for one in findings.absent],
        "left_out": [_absent(one) for one in findings.left_out],
        "reports": [_aged(report, findings) for report in findings.reports],
        "controls": [
            {**known_bad_to_json(control), "report": _aged(control.report, findings)}
            for control in findings.controls
        ],
    }


def _aged(report: Report, findings: ChangeReview) -> dict[str, Any]:
    age = _hours(findings.age_of(report))
    return {**comparison_to_json(report, findings.policy), "age_hours": age}


def _cause(cause: Cause, report: Report) -> dict[str, Any]:
    death = death_of(report, cause)
    return {
        "area": cause.area.value,
        "better": cause.is_better,
        "action": cause.action.value,
        "sentence": cause_sentence(cause, report),
        "parts": [
            {
                "metric": part.metric,
                "statistic": part.statistic,
                "verdict": part.verdict.value,
                "effect": _number(part.effect),
                "action": part.action.value,
            }
            for part in cause.parts
        ],
        "failure": None if death is None else _failure(death),
    }


def _failure(death: Death) -> dict[str, Any]:
    trial = death.trial
    return {
        "reason": death.reason,
        "sides": list(death.sides),
        "trials": death.trials,
        "first": {
            "side": trial.side,
            "phase": trial.phase.value,
            "index": trial.index,
            "reason": trial.reason,
            "engine_died": trial.engine_died,
            "log_tail": trial.log_tail,
        },
    }


def _absent(absent: Absent) -> dict[str, Any]:
    return {
        "scenario": absent.scenario,
        "reason": absent.reason,
        "testbed": absent.testbed or None,
        "started_at": None if absent.started_at is None else _time(absent.started_at),
        "run_id": absent.run_id or None,
    }


def _hours(age: timedelta | None) -> float | None:
    return None if age is None else round(age / timedelta(hours=1), 2)


def _time(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


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
        "started_at": None if side.started_at is None else _time(side.started_at),
    }


def _testbed(testbed: Testbed) -> dict[str, Any]:
    document = {
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
        return document
    memory, limits = list(testbed.gpu_memory_bytes), list(testbed.gpu_power_limits_w)
    return document | {"gpu_memory_bytes": memory, "gpu_power_limits_w": limits}


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
        **({"changes": [asdict(one) for one in comparison.changes]} if comparison.changes else {}),
        "family": comparison.family or None,
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
