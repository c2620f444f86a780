"""JSON of controls, alerts and lists of runs (reports: ``analysis.wording.report_json``)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

from hybridwatch.analysis.alert_decisions import TriageAction
from hybridwatch.analysis.alerts import AlertGroup, Status
from hybridwatch.analysis.cause import Area
from hybridwatch.analysis.change_review import Absent, ChangeReview
from hybridwatch.analysis.control import Control
from hybridwatch.analysis.detection import KnownBad
from hybridwatch.analysis.gate import GateResult
from hybridwatch.analysis.policy import STRICT, Action, Policy
from hybridwatch.analysis.verdict import Report
from hybridwatch.analysis.wording.cause_text import CauseText
from hybridwatch.analysis.wording.report_json import (
    REPORT_SCHEMA,
    Moment,
    Number,
    PartItem,
    Shape,
    comparison_to_json,
    kept_at,
    utc_text,
)
from hybridwatch.records.identity import name_line, name_role
from hybridwatch.records.run import Run
from hybridwatch.records.store import Stored
from hybridwatch.reports.alert_text import group_text

if TYPE_CHECKING:
    from hybridwatch.history.runs import RunRow  # with pandas, which a client does without

ALONE: Final = "alone"
"""Stands for a role where a run has one build only."""
_SCHEMA: Final = 1


def gate_to_json(
    result: GateResult,
    report: Report,
    policy: Policy = STRICT,
    age: timedelta | None = None,
    control: KnownBad | None = None,
) -> dict[str, Any]:
    """Turn a gate's answer and the report behind it into plain values; ``age`` of its run."""
    return {
        "schema_version": REPORT_SCHEMA,
        **asdict(result),
        "age_hours": _hours(age),
        "control": None if control is None else known_bad_to_json(control),
        "report": comparison_to_json(report, policy),
    }


def known_bad_to_json(control: KnownBad) -> dict[str, Any]:
    """Turn what a known-bad control showed into plain values, without its report."""
    return {
        "scenario": control.scenario,
        "lost": list(control.lost),
        "sight": control.detection.value,
        "by": [f"{found.metric.id} {found.statistic}" for found in control.by],
        "blemishes": list(control.baseline_violations),
    }


def findings_to_json(result: GateResult, findings: ChangeReview) -> dict[str, Any]:
    """Turn a gate's answer over many scenarios and what it is about into plain values."""
    return {
        "schema_version": REPORT_SCHEMA,
        **asdict(result),
        "judged_at": _time(findings.now),
        "absent": [_absent(one) for one in findings.absent],
        "left_out": [_absent(one) for one in findings.left_out],
        "reports": [_aged(report, findings) for report in findings.reports],
        "controls": [
            {**known_bad_to_json(control), "report": _aged(control.report, findings)}
            for control in findings.controls
        ],
    }


class DecisionItem(Shape):
    """A decision about an alert."""

    number: int
    at: Moment
    who: str
    action: TriageAction = kept_at("decision.action")
    text: str = kept_at("decision.text")
    until: Moment | None = kept_at("decision.until")


class MemberItem(Shape):
    """One place where a cause shows."""

    key: str = kept_at("subject.key")
    scenario: str = kept_at("subject.scenario")
    testbed: str = kept_at("subject.testbed")
    baseline: str = kept_at("subject.baseline")
    contender: str = kept_at("subject.contender")
    status: Status
    effect: Number = kept_at("cause.lead.effect")
    run_id: str = kept_at("bad.run_id")


class AlertItem(Shape):
    """Bad news of one cause, and what became of it."""

    key: str
    scenario: str = kept_at("lead.subject.scenario")
    area: Area = kept_at("lead.subject.area")
    testbed: str = kept_at("lead.subject.testbed")
    baseline: str = kept_at("lead.subject.baseline")
    contender: str = kept_at("lead.subject.contender")
    status: Status
    action: Action = kept_at("rank")
    what: str = kept_at("text.what")
    detail: str = kept_at("text.detail")
    parts: list[PartItem] = kept_at("lead.cause.parts")
    members: list[MemberItem]
    run_id: str = kept_at("lead.bad.run_id")
    newest_run_id: str = kept_at("newest.run_id")
    opened_at: Moment = kept_at("opened_by.started_at")
    muted_until: Moment | None
    version: int = Field(ge=0)
    decisions: list[DecisionItem] = kept_at("decisions.all")


class _WordedAlert(AlertGroup):
    @cached_property
    def text(self) -> CauseText:
        return group_text(self)


def alert_to_json(alert: AlertGroup) -> dict[str, Any]:
    """Turn an alert and what people did about it into plain values; its first member leads."""
    return AlertItem.model_validate(_WordedAlert(alert.members)).model_dump(mode="json")


def _aged(report: Report, findings: ChangeReview) -> dict[str, Any]:
    age = _hours(findings.compute_age(report))
    return {**comparison_to_json(report, findings.policy), "age_hours": age}


def _absent(absent: Absent) -> dict[str, Any]:
    return {
        **asdict(absent),
        "testbed": absent.testbed or None,
        "started_at": _time(absent.started_at),
        "run_id": absent.run_id or None,
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else utc_text(moment)


def _hours(age: timedelta | None) -> float | None:
    return None if age is None else round(age / timedelta(hours=1), 2)


def control_to_json(control: Control) -> dict[str, Any]:
    """One control of a scenario; fields as in ``docs/json.md``."""
    return {**asdict(control), "kind": control.kind.value}


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs are wanted, of builds and testbeds whose names begin so; empty leaves all in.

    ``scenario`` is an id or a group, ``role`` a ``Role`` or ``alone``.
    """

    scenario: str = ""
    build: str = ""
    testbed: str = ""
    role: str = ""

    def fits(self, scenario: str, testbed: str, builds: Sequence[str], role: str) -> bool:
        """Whether a run of this scenario, testbed, builds (labels and lines) and role is wanted."""
        return (
            (self.scenario in {"", scenario} or scenario.startswith(f"{self.scenario}/"))
            and testbed.startswith(self.testbed)
            and any(label.startswith(self.build) for label in builds)
            and self.role in {"", role}
        )

    def fits_run(self, run: Run) -> bool:
        """Whether a run is wanted."""
        names = [name for build in run.builds for name in (build.label, name_line(build))]
        return self.fits(run.scenario.id, run.testbed.id, names, _role(run))


def records_to_json(
    shown: Sequence[Stored], broken: Mapping[str, str], *, more: bool
) -> dict[str, Any]:
    """Turn a list of runs into plain values; fields as in ``docs/json.md``."""
    return {
        "schema_version": _SCHEMA,
        "records": [record_to_json(stored) for stored in shown],
        "more": more,
        "unreadable": [{"record": path, "reason": why} for path, why in broken.items()],
    }


def record_to_json(stored: Stored) -> dict[str, Any]:
    """Turn one run of a list into plain values."""
    run = stored.run
    return {
        "run_id": run.id,
        "record": str(stored.path),
        "started_at": run.started_at.isoformat(),
        "scenario": run.scenario.id,
        "testbed": run.testbed.id,
        "builds": [build.label for build in run.builds],
        "lines": [name_line(build) for build in run.builds],
        "role": _role(run),
        "failed_trials": sum(trial.failure is not None for trial in run.trials),
        "sha256": run.sha256,
    }


def row_to_json(row: "RunRow", role: str) -> dict[str, Any]:
    """Turn a run into the same values without reading its record, whose path stays relative."""
    return {
        "run_id": row.run,
        "record": row.record,
        "started_at": row.started_at.isoformat(),
        "scenario": row.scenario,
        "testbed": row.testbed,
        "builds": list(row.builds),
        "lines": list(row.lines),
        "role": role,
        "failed_trials": row.failures,
        "sha256": row.sha256 or None,
    }


def _role(run: Run) -> str:
    return name_role(*run.builds, known_bad=run.known_bad).value if len(run.builds) == 2 else ALONE
