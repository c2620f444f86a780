"""Two curves as plain values, part of a report's JSON (``docs/json.md``)."""

from dataclasses import asdict
from typing import Any

from hybridwatch.analysis.tradeoff import SideCurve, Tradeoff


def tradeoff_to_json(found: Tradeoff) -> dict[str, Any]:
    """Turn two curves and where they cross into plain values; numbers in base units."""
    return {
        "baseline": _side(found.baseline),
        "contender": _side(found.contender),
        "common": None if found.common is None else list(found.common),
        "stretches": [asdict(one) for one in found.stretches],
        "crossings": [list(one) for one in found.crossings],
    }


def _side(curve: SideCurve) -> dict[str, Any]:
    plain = asdict(curve)
    if curve.clock == "wall":
        # Verdicts stored before there was another are to be had again to the letter.
        del plain["clock"]
    return {**plain, "slo": dict(curve.slo), "points": [asdict(p) for p in curve.points]}
