"""What changed lately, cause by cause: got worse, failed, improved or recovered."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pandas as pd

from hybridwatch.analysis.cause import Part, area_of, causes_of
from hybridwatch.analysis.gate import outcome
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.history.overview_rows import VerdictRow, name_of, verdict_rows
from hybridwatch.history.severity import ORDER
from hybridwatch.pages.address import address
from hybridwatch.pages.document import (
    Block,
    Cell,
    Choice,
    Column,
    Folded,
    Link,
    Paragraph,
    Section,
    Table,
)
from hybridwatch.pages.screens.alerting import engine_message
from hybridwatch.pages.screens.overview_grid import history_of, several
from hybridwatch.pages.screens.screen import Source
from hybridwatch.report.sentence import plural
from hybridwatch.wording.cause_text import cause_text

_SHOWN: Final = 12
"""Changes that are shown at once; a bad night has hundreds."""
_FOLDED: Final = 100
_NAMED: Final = 3
_Change = tuple[VerdictRow, str]
"""A verdict, and the one that held before."""


def news_section(news: pd.DataFrame, since: Choice, source: Source) -> Section:
    """Lay out every comparison that says something else than it did.

    Args:
        news: As ``Index.changed_since`` gives it.
        since: Since when.
        source: Where it belongs.
    """
    bad = {verdict.value for verdict in Verdict if verdict.is_bad_news}
    is_news = news["verdict"].isin(bad | {Verdict.IMPROVEMENT.value}) | news["before"].isin(bad)
    rows = [_row(part, source) for part in _alike(news[is_news])]
    rows.sort(key=lambda row: ORDER.index(row[0]))
    columns = (
        Column("now"),
        Column("scenario, baseline → contender"),
        Column("what happened", wide=True),
        Column("before"),
        Column("measured"),
    )
    title = f"Changed since {since.chosen_text}"
    blocks: list[Block] = []
    if rows:
        blocks.append(Table(title, columns, tuple(rows[:_SHOWN])))
    else:
        blocks.append(Paragraph("No comparison got worse, failed or recovered."))
    if rest := rows[_SHOWN:]:
        cut = f", the first {_FOLDED}" if len(rest) > _FOLDED else ""
        table = Table("More changes", columns, tuple(rest[:_FOLDED]))
        blocks.append(Folded(f"{plural(len(rest), 'more change')}{cut}", (table,)))
    if calm := int((~is_news).sum()):
        text = f"{plural(calm, 'other comparison')} changed without being news, such as a first "
        blocks.append(Paragraph(f"{text}measurement that found nothing.", quiet=True))
    return Section(title, tuple(blocks))


def _alike(news: pd.DataFrame) -> Iterator[list[_Change]]:
    """Put together what has one cause in one scenario on one testbed, the newest first."""
    found: dict[tuple[object, ...], list[_Change]] = {}
    both = zip(verdict_rows(news), news["before"].tolist(), strict=True)
    for row, before in reversed(list(both)):
        verdict = Verdict(row.verdict)
        moved = verdict.is_bad_news or verdict is Verdict.IMPROVEMENT
        # What only recovered is told by its verdict: it has no size of its own.
        kind = area_of(row.metric, verdict) if moved else before
        better = not verdict.is_bad_news
        found.setdefault((row.scenario, row.testbed, kind, better), []).append((row, before))
    yield from found.values()


def _row(part: Sequence[_Change], source: Source) -> tuple[Any, ...]:
    rows = [row for row, _ in part]
    first, when = rows[0], rows[0].started_at.to_pydatetime()
    pairs = dict.fromkeys(f"{row.baseline} → {row.contender}" for row in rows)
    names = tuple(dict.fromkeys(name_of(row.metric, row.statistic)[1] for row in rows))
    earlier = {Verdict(before) for _, before in part if before}
    return (
        Verdict(first.verdict),
        Cell(Link(first.scenario, history_of(first, names[:_NAMED])), several(pairs)),
        Cell(_what(rows, names, source), title=", ".join(names)),
        min(earlier, key=ORDER.index) if earlier else "first time",
        Cell(source.ago(when), Link("run", address("run", run=first.run))),
    )


def _what(rows: Sequence[VerdictRow], names: Sequence[str], source: Source) -> str:
    causes = causes_of(_part(row, source) for row in rows)
    if not causes:
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return f"Recovered: {', '.join(names[:_NAMED])}{more}"
    message = engine_message(rows[0].run, source) if rows[0].verdict == Verdict.FAILED.value else ""
    return message or cause_text(causes[0]).sentence()


def _part(row: VerdictRow, source: Source) -> Part:
    verdict = Verdict(row.verdict)
    wanted = source.checkout().policy.rule_for(row.scenario, row.metric).action
    effect = None if math.isnan(row.effect) else row.effect
    action = outcome(verdict, wanted, sure=True)
    return Part(row.metric, row.statistic, verdict, effect, action)
