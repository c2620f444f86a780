"""Whether a stored verdict was had again, and if not, where it differs and what has changed."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from hybridwatch.analysis.replay import Deviation, VerdictReplay
from hybridwatch.analysis.verdict import Comparison, Report
from hybridwatch.analysis.wording.labels import plural
from hybridwatch.analysis.wording.report_json import REPORT_SCHEMA, to_json
from hybridwatch.reports.escape import one_line
from hybridwatch.reports.reason_text import because

_LISTED: Final = 20
"""More deviations than this are only counted; ``--json`` has them all."""
_SHOWN: Final = 60
"""How much of a deviating value is shown."""


def print_replay(path: Path, replay: VerdictReplay, report: Report, console: Console) -> None:
    """Print what became of a stored verdict."""
    for line in replay.alterations:
        console.print(Text(one_line(line), style="red"))
    for deviation in replay.deviations[:_LISTED]:
        _print_indented(_deviation_text(report, deviation), console)
    if len(replay.deviations) > _LISTED:
        _print_indented(f"and {len(replay.deviations) - _LISTED} more", console)
    if replay.changes:
        console.print(Text("Changed since it was stored:", style="bold"))
        for line in replay.changes:
            _print_indented(line, console)
    style = "green" if replay.same else "bold red"
    console.print(Text(one_line(f"{path}: {conclusion(replay, report)}"), style=style))


def conclusion(replay: VerdictReplay, report: Report) -> str:
    """Say in one sentence whether a verdict was had again."""
    compared = plural(len(report.comparisons), "comparison")
    if replay.same:
        return f"the same, bit for bit: {compared} from the records alone."
    if not replay.deviations:
        return f"the same numbers ({compared}), but not from what was judged then."
    places = plural(len(replay.deviations), "place")
    suspects = []
    if replay.alterations:
        suspects.append("a file was altered")
    if replay.changes:
        suspects.append("what computes it has changed")
    why = " and ".join(suspects) or (
        "and nothing that it hangs on has changed: please report this as a defect of hybridwatch"
    )
    return f"not the same: differs in {places}; {why}."


def replay_to_json(
    replay: VerdictReplay, report: Report, chosen: Sequence[Comparison]
) -> dict[str, Any]:
    """Turn a replay into plain values; fields as in ``docs/json.md``."""
    return {
        "schema_version": REPORT_SCHEMA,
        "same": replay.same,
        "deviations": [asdict(deviation) for deviation in replay.deviations],
        "alterations": list(replay.alterations),
        "changes": list(replay.changes),
        "explanations": [
            {
                "metric": comparison.metric.id,
                "statistic": comparison.statistic,
                "because": because(comparison, report.false_discovery_rate),
            }
            for comparison in chosen
        ],
        "report": to_json(report),
    }


def _print_indented(line: str, console: Console) -> None:
    console.print(Padding(Text(one_line(line), style="dim"), (0, 0, 0, 2), expand=False))


def _deviation_text(report: Report, deviation: Deviation) -> str:
    stored, again = (_shown(value) for value in (deviation.stored, deviation.again))
    return f"{_named(report, deviation.path)}: stored {stored}, again {again}"


def _named(report: Report, path: str) -> str:
    """Put the metric's name in the place of its number."""
    for at, comparison in enumerate(report.comparisons):
        prefix = f"comparisons[{at}]"
        if path.startswith(prefix):
            name = f"{comparison.metric.id} {comparison.statistic}"
            return name + path.removeprefix(prefix).replace(".", " ", 1)
    return path


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "\u2026"
