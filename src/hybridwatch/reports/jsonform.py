"""What is judged beside a report as JSON: gates, alerts, controls; documented in ``docs/json.md``.

The report itself, and what holds for every number and field, is in
``analysis.wording.report_json``.
"""

from dataclasses import asdict
from datetime import timedelta
from typing import Any

from hybridwatch.analysis.alerts import Alert, AlertGroup
from hybridwatch.analysis.change_review import Absent, ChangeReview
from hybridwatch.analysis.control import Control
from hybridwatch.analysis.detection import KnownBad
from hybridwatch.analysis.gate import GateResult
from hybridwatch.analysis.policy import STRICT, Policy
from hybridwatch.analysis.verdict import Report
from hybridwatch.analysis.wording.report_json import (
    REPORT_SCHEMA,
    comparison_to_json,
    fields,
    part_to_json,
    plain_value,
)
from hybridwatch.reports.alert_text import group_text


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
        **fields(result, "passed", "reasons", "warnings"),
        "age_hours": _hours(age),
        "control": None if control is None else known_bad_to_json(control),
        "report": comparison_to_json(report, policy),
    }


def known_bad_to_json(control: KnownBad) -> dict[str, Any]:
    """Turn what a known-bad control showed into plain values, without its report."""
    return {
        **fields(control, "scenario", "lost"),
        "sight": control.detection.value,
        "by": [f"{found.metric.id} {found.statistic}" for found in control.by],
        "blemishes": list(control.baseline_violations),
    }


def findings_to_json(result: GateResult, findings: ChangeReview) -> dict[str, Any]:
    """Turn a gate's answer over many scenarios and what it is about into plain values."""
    return {
        "schema_version": REPORT_SCHEMA,
        **fields(result, "passed", "reasons", "warnings"),
        "judged_at": plain_value(findings.now),
        "absent": [_absent(one) for one in findings.absent],
        "left_out": [_absent(one) for one in findings.left_out],
        "reports": [_aged(report, findings) for report in findings.reports],
        "controls": [
            {**known_bad_to_json(control), "report": _aged(control.report, findings)}
            for control in findings.controls
        ],
    }


def alert_to_json(alert: AlertGroup) -> dict[str, Any]:
    """Turn an alert and what people did about it into plain values; its first member leads."""
    text, lead = group_text(alert), alert.lead
    return {
        "key": alert.key,
        **fields(lead.matter, "scenario", "area", "testbed", "baseline", "contender"),
        "status": alert.status.value,
        "action": alert.rank.value,
        **fields(text, "what", "detail"),
        "parts": [part_to_json(part) for part in lead.cause.parts],
        "members": [_member(one) for one in alert.members],
        "run_id": lead.bad.run_id,
        "newest_run_id": alert.newest.run_id,
        "opened_at": plain_value(alert.opened_by.started_at),
        "muted_until": plain_value(alert.muted_until),
        "version": alert.version,
        "decisions": [
            {
                **fields(entry, "number", "at", "who"),
                **fields(entry.act, "deed", "text", "until"),
            }
            for entry in alert.decisions.all
        ],
    }


def _member(alert: Alert) -> dict[str, Any]:
    return {
        **fields(alert.matter, "key", "scenario", "testbed", "baseline", "contender"),
        "status": alert.status.value,
        "effect": alert.cause.lead.effect,
        "run_id": alert.bad.run_id,
    }


def _aged(report: Report, findings: ChangeReview) -> dict[str, Any]:
    age = _hours(findings.age_of(report))
    return {**comparison_to_json(report, findings.policy), "age_hours": age}


def _absent(absent: Absent) -> dict[str, Any]:
    named = fields(absent, "scenario", "reason", "testbed", "started_at", "run_id")
    return named | {"testbed": absent.testbed or None, "run_id": absent.run_id or None}


def _hours(age: timedelta | None) -> float | None:
    return None if age is None else round(age / timedelta(hours=1), 2)


def control_to_json(control: Control) -> dict[str, Any]:
    """One control of a scenario; fields as in ``docs/json.md``."""
    return {**asdict(control), "kind": control.kind.value}
