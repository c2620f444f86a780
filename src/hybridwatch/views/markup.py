"""Tables of verdicts as HTML fragments.

Everything that comes from a record passes through ``escape``, here and nowhere else; the style is
ours. A verdict is always told three ways: word, symbol, colour.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from typing import Final

from hybridwatch.analysis.verdict import Comparison, Report, Verdict
from hybridwatch.views import numbers
from hybridwatch.views.history import Standing, age, worst_first
from hybridwatch.views.sentence import MARKS, centers_of, name_of

# Solid pills with white type, at least 4.5:1 each, so they read alike on light and dark ground.
_COLOURS: Final[dict[Verdict, str]] = {
    Verdict.REGRESSION: "#b3261e",
    Verdict.IMPROVEMENT: "#1f5fbf",
    Verdict.EQUIVALENT: "#0b6e5f",
    Verdict.INCONCLUSIVE: "#8a5a00",
    Verdict.NOT_COMPARABLE: "#5b6470",
    Verdict.MISSING: "#7a2e6f",
    Verdict.FAILED: "#7a2e6f",
}

STYLE: Final = """<style>
.hw-scroll { overflow-x: auto; }
.hw { border-collapse: collapse; width: 100%; font-size: 0.875rem; line-height: 1.35; }
.hw th { text-align: left; font-weight: 500; opacity: 0.7; padding: 0.35rem 0.9rem 0.35rem 0;
  border-bottom: 1px solid rgba(128,128,128,0.45); white-space: nowrap; }
.hw td { padding: 0.5rem 0.9rem 0.5rem 0; border-bottom: 1px solid rgba(128,128,128,0.2);
  vertical-align: top; }
.hw tr:last-child td { border-bottom: none; }
.hw tr.hw-chosen td { background: rgba(128,128,128,0.12); }
.hw tr.hw-chosen td:first-child { box-shadow: inset 3px 0 0 currentColor; }
.hw td:first-child, .hw th:first-child { padding-left: 0.75rem; }
.hw .hw-number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.hw .hw-name { font-weight: 600; white-space: nowrap; }
.hw .hw-wide { min-width: 14rem; }
.hw .hw-quiet { opacity: 0.72; font-size: 0.8rem; }
.hw-headline { display: flex; flex-wrap: wrap; gap: 0.4rem 0.8rem; align-items: center;
  padding-bottom: 0.4rem; }
.hw-pill { display: inline-block; padding: 0.1rem 0.6rem; border-radius: 1rem; color: #fff;
  font-size: 0.8rem; font-weight: 600; white-space: nowrap; }
</style>"""


def pill(verdict: Verdict) -> str:
    """Render a verdict as word, symbol and colour."""
    return (
        f'<span class="hw-pill" style="background:{_COLOURS[verdict]}">'
        f"{MARKS[verdict]}&nbsp;{verdict.value}</span>"
    )


def headline(verdict: Verdict, sentence: str) -> str:
    """Render what one report found, in one line."""
    return f'{STYLE}<div class="hw-headline">{pill(verdict)}<span>{escape(sentence)}</span></div>'


def standings_table(standings: Sequence[Standing], now: datetime, chosen: str | None = None) -> str:
    """Render the latest verdict of every comparison.

    Args:
        standings: In the order to show.
        now: Ages count back from here.
        chosen: Run id of the row to mark.
    """
    head = _head("verdict", "scenario, baseline → contender", "what", "measured, testbed")
    rows = (_standing_row(standing, now, chosen) for standing in standings)
    return _table(head, rows)


def comparisons_table(report: Report) -> str:
    """Render every comparison of one report, worst first."""
    head = _head(
        "verdict",
        "metric",
        "baseline",
        "contender",
        "change",
        "interval",
        "p adjusted",
        "n",
        right=frozenset({"baseline", "contender", "change", "interval", "p adjusted", "n"}),
    )
    return _table(head, map(_comparison_row, worst_first(report.comparisons)))


def _standing_row(standing: Standing, now: datetime, chosen: str | None) -> str:
    run = standing.entry.run
    builds = " → ".join(build.label for build in run.builds)
    cells = (
        _cell(pill(standing.verdict)),
        _cell(_stacked(run.scenario.id, builds)),
        _cell(escape(standing.sentence), "hw-wide"),
        _cell(_stacked(age(run.started_at, now), run.testbed.id)),
    )
    mark = ' class="hw-chosen"' if run.id == chosen else ""
    return f"<tr{mark}>{''.join(cells)}</tr>"


def _stacked(first: str, second: str) -> str:
    return f'<div class="hw-name">{escape(first)}</div><div class="hw-quiet">{escape(second)}</div>'


def _comparison_row(comparison: Comparison) -> str:
    texts = (
        *centers_of(comparison),
        numbers.change(comparison),
        numbers.interval(comparison) or numbers.ABSENT,
        numbers.p_value(comparison.p_adjusted),
        numbers.n(comparison),
    )
    cells = [
        _cell(pill(comparison.verdict)),
        _cell(escape(name_of(comparison)), "hw-name"),
        *(_cell(escape(text), "hw-number") for text in texts),
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _head(*names: str, right: frozenset[str] = frozenset()) -> str:
    cells = (
        f'<th class="hw-number">{name}</th>' if name in right else f"<th>{name}</th>"
        for name in names
    )
    return f"<thead><tr>{''.join(cells)}</tr></thead>"


def _cell(content: str, kind: str = "") -> str:
    return f'<td class="{kind}">{content}</td>' if kind else f"<td>{content}</td>"


def _table(head: str, rows: Iterable[str]) -> str:
    body = f"<tbody>{''.join(rows)}</tbody>"
    return f'{STYLE}<div class="hw-scroll"><table class="hw">{head}{body}</table></div>'
