"""A report as JSON: the stable form that ``--json`` prints, documented in ``docs/json.md``.

Numbers are numbers in base units, absent ones are null; there is no NaN. A field may be added
within a schema version; none is renamed, removed or given another meaning.
"""

import math
from dataclasses import asdict
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

from hybridwatch.analysis.cause import Cause, Part, causes_in
from hybridwatch.analysis.death import Death, death_of
from hybridwatch.analysis.policy import STRICT, Policy
from hybridwatch.analysis.sequential import level_of
from hybridwatch.analysis.tradeoff import SideCurve, Tradeoff
from hybridwatch.analysis.verdict import (
    Attribution,
    Comparison,
    Flip,
    Interval,
    Report,
    Side,
    Summary,
)
from hybridwatch.analysis.wording.cause_text import cause_sentence
from hybridwatch.records.identity import EngineBuild, Testbed
from hybridwatch.records.run import Answer, Looks


def tradeoff_to_json(found: Tradeoff) -> dict[str, Any]:
    """Turn two curves and where they cross into plain values; numbers in base units."""
    return {
        "baseline": _curve(found.baseline),
        "contender": _curve(found.contender),
        "common": None if found.common is None else list(found.common),
        "stretches": [asdict(one) for one in found.stretches],
        "crossings": [list(one) for one in found.crossings],
    }


def _curve(curve: SideCurve) -> dict[str, Any]:
    plain = asdict(curve)
    if curve.clock == "wall":
        # Verdicts stored before there was another are to be had again to the letter.
        del plain["clock"]
    return {**plain, "slo": dict(curve.slo), "points": [asdict(p) for p in curve.points]}


REPORT_SCHEMA: Final = 1


def to_json(report: Report) -> dict[str, Any]:
    """Turn a report into plain dictionaries, lists, numbers and texts."""
    return {
        "schema_version": REPORT_SCHEMA,
        "scenario": fields(report.scenario, "id", "version", "digest", "fix"),
        "baseline": _side(report.baseline),
        "contender": _side(report.contender),
        "bad_news": bool(report.bad_news),
        "tests": report.tests,
        "families": [fields(one, "name", "tests") for one in report.families],
        "false_discovery_rate": report.false_discovery_rate,
        "looks": _looks(report.looks),
        "comparisons": [_comparison(comparison) for comparison in report.comparisons],
        **fields(report, "differences", "failures"),
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


def part_to_json(part: Part) -> dict[str, Any]:
    """Turn a metric that shows a cause into plain values."""
    return fields(part, "metric", "statistic", "verdict", "effect", "action")


def _cause(cause: Cause, report: Report) -> dict[str, Any]:
    death = death_of(report, cause)
    return {
        "area": cause.area.value,
        "better": cause.is_better,
        "action": cause.action.value,
        "sentence": cause_sentence(cause, report),
        "parts": [part_to_json(part) for part in cause.parts],
        "failure": None if death is None else _failure(death),
    }


def _failure(death: Death) -> dict[str, Any]:
    named = ("side", "phase", "index", "reason", "engine_died", "log_tail")
    first = fields(death.trial, *named)
    return {**fields(death, "reason", "sides", "trials"), "first": first}


def _looks(looks: Looks | None) -> dict[str, Any] | None:
    if looks is None:
        return None
    return {**fields(looks, "planned", "made"), "level": level_of(looks)}


def _side(side: Side) -> dict[str, Any]:
    return {
        "run_id": side.run_id,
        "build": _build(side.build),
        "testbed": _testbed(side.testbed),
        "started_at": plain_value(side.started_at),
    }


def _testbed(testbed: Testbed) -> dict[str, Any]:
    names = ("id", "cpu_model", "cores", "memory_bytes", "kernel", "gpus", "driver", "cuda")
    document = fields(testbed, *names)
    if not testbed.gpus:
        # Verdicts stored before these were known are to be had again to the letter.
        return document
    return document | fields(testbed, "gpu_memory_bytes", "gpu_power_limits_w")


def _build(build: EngineBuild) -> dict[str, Any]:
    # Left out where it is not known: verdicts stored before are to be had again to the letter.
    late = ("code_digest", "changed_files", "revision", "diff_digest", "line")
    known = [name for name in late if getattr(build, name)]
    names = ("label", "name", "release", "accelerator", "distribution", "lock_digest")
    return {
        **fields(build, *known, *names, "wheel_digest"),
        "fixes": {fix: state.value for fix, state in sorted(build.fixes.items())},
        "flags": dict(sorted(build.flags.items())),
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    metric = comparison.metric
    return {
        "metric": metric.id,
        "statistic": comparison.statistic,
        **fields(metric, "unit", "better", "kind", "margin"),
        "verdict": comparison.verdict.value,
        "bad_news": comparison.verdict.is_bad_news,
        **fields(comparison, "test", "design", "assumption"),
        "baseline": _summary(comparison.baseline),
        "contender": _summary(comparison.contender),
        **fields(comparison, "effect"),
        "interval": _interval(comparison.interval),
        **fields(comparison, "pairs", "relevance", "noise", "churn"),
        **fields(comparison, "p_value", "p_adjusted", "p_holm", "equivalence_p"),
        **fields(comparison, "minimum_detectable_effect", "trials_needed", "doubts"),
        "flips": [_flip(flip) for flip in comparison.flips],
        **({"changes": [asdict(one) for one in comparison.changes]} if comparison.changes else {}),
        "family": comparison.family or None,
    }


def _attribution(attribution: Attribution | None) -> dict[str, Any] | None:
    if attribution is None:
        return None
    return {
        **fields(attribution, "metric", "effect"),
        "factors": [
            {
                **fields(factor, "name", "effect"),
                "interval": _interval(factor.interval),
                **fields(factor, "share", "moved"),
            }
            for factor in attribution.factors
        ],
        "movers": [factor.name for factor in attribution.movers],
    }


def _summary(summary: Summary | None) -> dict[str, Any] | None:
    return None if summary is None else fields(summary, "center", "n", "values")


def _interval(interval: Interval | None) -> dict[str, Any] | None:
    return None if interval is None else fields(interval, "low", "high", "confidence")


def _flip(flip: Flip) -> dict[str, Any]:
    question = ("task", "task_version", "doc_id", "doc_hash", "prompt", "target")
    return {
        **fields(flip.baseline, *question),
        "baseline": _answer(flip.baseline),
        "contender": _answer(flip.contender),
    }


def _answer(answer: Answer) -> dict[str, Any]:
    return fields(answer, "response", "correct")


def fields(value: object, *names: str) -> dict[str, Any]:
    """Take attributes of a value, under their own names."""
    return {name: plain_value(getattr(value, name)) for name in names}


def plain_value(value: object) -> Any:
    """Turn an attribute into what JSON has a word for."""
    match value:
        case Enum():
            return value.value
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        case tuple():
            return [plain_value(item) for item in value]
        case float():
            # JSON has no word for NaN or infinity; Python would write one all the same.
            return value if math.isfinite(value) else None
        case _:
            return value
