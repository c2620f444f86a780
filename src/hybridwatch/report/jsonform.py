"""A report as JSON: the stable form that ``--json`` prints, documented in ``docs/json.md``.

Numbers are numbers in base units, absent ones are null; there is no NaN. A field may be added
within a schema version; none is renamed, removed or given another meaning.
"""

import math
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Final

from hybridwatch.analysis.cause import Cause, Part, causes_in
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
from hybridwatch.report.alert_text import alert_text
from hybridwatch.report.cause_text import cause_sentence
from hybridwatch.report.tradeoff_json import tradeoff_to_json
from hybridwatch.triage import Alert

REPORT_SCHEMA: Final = 1


def to_json(report: Report) -> dict[str, Any]:
    """Turn a report into plain dictionaries, lists, numbers and texts."""
    return {
        "schema_version": REPORT_SCHEMA,
        "scenario": _fields(report.scenario, "id", "version", "digest", "fix"),
        "baseline": _side(report.baseline),
        "contender": _side(report.contender),
        "bad_news": bool(report.bad_news),
        "tests": report.tests,
        "families": [_fields(one, "name", "tests") for one in report.families],
        "false_discovery_rate": report.false_discovery_rate,
        "looks": _looks(report.looks),
        "comparisons": [_comparison(comparison) for comparison in report.comparisons],
        **_fields(report, "differences", "failures"),
        "attribution": _attribution(report.attribution),
        # Left out of a report without one: verdicts stored before are to be had to the letter.
        **({"tradeoff": tradeoff_to_json(report.tradeoff)} if report.tradeoff else {}),
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
        **_fields(result, "passed", "reasons", "warnings"),
        "age_hours": _hours(age),
        "control": None if control is None else known_bad_to_json(control),
        "report": comparison_to_json(report, policy),
    }


def known_bad_to_json(control: KnownBad) -> dict[str, Any]:
    """Turn what a known-bad control showed into plain values, without its report."""
    return {
        **_fields(control, "scenario", "lost", "sight"),
        "by": [f"{found.metric.id} {found.statistic}" for found in control.by],
        **_fields(control, "blemishes"),
    }


def findings_to_json(result: GateResult, findings: ChangeReview) -> dict[str, Any]:
    """Turn a gate's answer over many scenarios and what it is about into plain values."""
    return {
        "schema_version": REPORT_SCHEMA,
        **_fields(result, "passed", "reasons", "warnings"),
        "judged_at": _plain(findings.now),
        "absent": [_absent(one) for one in findings.absent],
        "left_out": [_absent(one) for one in findings.left_out],
        "reports": [_aged(report, findings) for report in findings.reports],
        "controls": [
            {**known_bad_to_json(control), "report": _aged(control.report, findings)}
            for control in findings.controls
        ],
    }


def alert_to_json(alert: Alert) -> dict[str, Any]:
    """Turn an alert and what people did about it into plain values."""
    text = alert_text(alert)
    return {
        **_fields(alert.matter, "key", "scenario", "area", "testbed", "baseline", "contender"),
        "status": alert.status.value,
        "action": alert.rank.value,
        **_fields(text, "what", "detail"),
        "parts": [_part(part) for part in alert.cause.parts],
        "run_id": alert.bad.run_id,
        "newest_run_id": alert.newest.run_id,
        "opened_at": _plain(alert.opened_by.started_at),
        "muted_until": _plain(alert.muted_until),
        "version": alert.decisions.version,
        "decisions": [
            {
                **_fields(entry, "number", "at", "who"),
                **_fields(entry.act, "deed", "text", "until"),
            }
            for entry in alert.decisions.all
        ],
    }


def _part(part: Part) -> dict[str, Any]:
    return _fields(part, "metric", "statistic", "verdict", "effect", "action")


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
        "parts": [_part(part) for part in cause.parts],
        "failure": None if death is None else _failure(death),
    }


def _failure(death: Death) -> dict[str, Any]:
    named = ("side", "phase", "index", "reason", "engine_died", "log_tail")
    first = _fields(death.trial, *named)
    return {**_fields(death, "reason", "sides", "trials"), "first": first}


def _absent(absent: Absent) -> dict[str, Any]:
    named = _fields(absent, "scenario", "reason", "testbed", "started_at", "run_id")
    return named | {"testbed": absent.testbed or None, "run_id": absent.run_id or None}


def _hours(age: timedelta | None) -> float | None:
    return None if age is None else round(age / timedelta(hours=1), 2)


def _looks(looks: Looks | None) -> dict[str, Any] | None:
    if looks is None:
        return None
    return {**_fields(looks, "planned", "made"), "level": level_of(looks)}


def _side(side: Side) -> dict[str, Any]:
    return {
        "run_id": side.run_id,
        "build": _build(side.build),
        "testbed": _testbed(side.testbed),
        "started_at": _plain(side.started_at),
    }


def _testbed(testbed: Testbed) -> dict[str, Any]:
    names = ("id", "cpu_model", "cores", "memory_bytes", "kernel", "gpus", "driver", "cuda")
    document = _fields(testbed, *names)
    if not testbed.gpus:
        # Verdicts stored before these were known are to be had again to the letter.
        return document
    return document | _fields(testbed, "gpu_memory_bytes", "gpu_power_limits_w")


def _build(build: EngineBuild) -> dict[str, Any]:
    # Left out where it is not known: verdicts stored before are to be had again to the letter.
    late = ("code_digest", "changed_files", "revision", "diff_digest")
    known = [name for name in late if getattr(build, name)]
    names = ("label", "name", "release", "accelerator", "distribution", "lock_digest")
    return {
        **_fields(build, *known, *names, "wheel_digest"),
        "fixes": {fix: state.value for fix, state in sorted(build.fixes.items())},
        "flags": dict(sorted(build.flags.items())),
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    metric = comparison.metric
    return {
        "metric": metric.id,
        "statistic": comparison.statistic,
        **_fields(metric, "unit", "better", "kind", "margin"),
        "verdict": comparison.verdict.value,
        "bad_news": comparison.verdict.is_bad_news,
        **_fields(comparison, "test", "design", "assumption"),
        "baseline": _summary(comparison.baseline),
        "contender": _summary(comparison.contender),
        **_fields(comparison, "effect"),
        "interval": _interval(comparison.interval),
        **_fields(comparison, "pairs", "relevance", "noise", "churn"),
        **_fields(comparison, "p_value", "p_adjusted", "p_holm", "equivalence_p"),
        **_fields(comparison, "minimum_detectable_effect", "trials_needed", "doubts"),
        "flips": [_flip(flip) for flip in comparison.flips],
        **({"changes": [asdict(one) for one in comparison.changes]} if comparison.changes else {}),
        "family": comparison.family or None,
    }


def _attribution(attribution: Attribution | None) -> dict[str, Any] | None:
    if attribution is None:
        return None
    return {
        **_fields(attribution, "metric", "effect"),
        "factors": [
            {
                **_fields(factor, "name", "effect"),
                "interval": _interval(factor.interval),
                **_fields(factor, "share", "moved"),
            }
            for factor in attribution.factors
        ],
        "movers": [factor.name for factor in attribution.movers],
    }


def _summary(summary: Summary | None) -> dict[str, Any] | None:
    return None if summary is None else _fields(summary, "center", "n", "values")


def _interval(interval: Interval | None) -> dict[str, Any] | None:
    return None if interval is None else _fields(interval, "low", "high", "confidence")


def _flip(flip: Flip) -> dict[str, Any]:
    question = ("task", "task_version", "doc_id", "doc_hash", "prompt", "target")
    return {
        **_fields(flip.baseline, *question),
        "baseline": _answer(flip.baseline),
        "contender": _answer(flip.contender),
    }


def _answer(answer: Answer) -> dict[str, Any]:
    return _fields(answer, "response", "correct")


def _fields(value: object, *names: str) -> dict[str, Any]:
    """Take attributes of a value, under their own names."""
    return {name: _plain(getattr(value, name)) for name in names}


def _plain(value: object) -> Any:
    match value:
        case Enum():
            return value.value
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        case tuple():
            return [_plain(item) for item in value]
        case float():
            # JSON has no word for NaN or infinity; Python would write one all the same.
            return value if math.isfinite(value) else None
        case _:
            return value


def control_to_json(control: Control) -> dict[str, Any]:
    """One control of a scenario; fields as in ``docs/json.md``."""
    return {**asdict(control), "kind": control.kind.value}
