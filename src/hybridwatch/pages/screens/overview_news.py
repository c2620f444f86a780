"""What changed recently, cause by cause: got worse, failed, recovered or improved.

A row is what one run changed, with that run's own numbers. Bad news and its end lead to the alert,
which has the commits and the command that searches them; an improvement, which has no alert, to its
run.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import pandas as pd

from hybridwatch.analysis.alert_timeline import (
    AlertSubject,
    RunVerdict,
    Timeline,
    Transition,
    TransitionKind,
)
from hybridwatch.analysis.cause import Area, CausePart, find_area, find_causes
from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.verdict import ORDER, Verdict
from hybridwatch.analysis.wording.cause_text import cause_sentence
from hybridwatch.analysis.wording.labels import plural
from hybridwatch.history.alerts import find_timelines
from hybridwatch.history.overview_rows import VerdictRow, render_name, since_when, verdict_rows
from hybridwatch.pages.address import Address, address
from hybridwatch.pages.document import (
    Block,
    Cell,
    ChoiceField,
    Column,
    Folded,
    Inline,
    Link,
    Paragraph,
    Section,
    Table,
    When,
)
from hybridwatch.pages.screens.alerting import engine_message
from hybridwatch.pages.screens.screen import ScreenSource
from hybridwatch.reports.alert_text import alert_text, is_control

_SHOWN: Final = 12
"""Changes that are shown at once; a bad night has hundreds."""
_FOLDED: Final = 100
_NAMED: Final = 3
_COLUMNS: Final = (
    Column("verdict"),
    Column("scenario, baseline → contender"),
    Column("what happened", wide=True),
    Column("changed"),
    Column("now"),
)


@dataclass(frozen=True, slots=True)
class _Change:
    """What one run changed.

    Attributes:
        text: What happened, with the numbers of that run.
        to: The view that says more.
        now: What became of it since.
        stands: Whether it is bad, and still is.
    """

    subject: AlertSubject
    verdict: Verdict
    text: str
    run: str
    at: datetime
    to: Address
    now: str
    stands: bool = False

    @property
    def place(self) -> tuple[bool, int, float]:
        """First what is still bad, the worst first; then the newest."""
        return (
            not self.stands,
            ORDER.index(self.verdict) if self.stands else 0,
            -self.at.timestamp(),
        )


def news_section(
    latest: pd.DataFrame,
    is_wanted: Callable[[AlertSubject], bool],
    since: ChoiceField,
    moment: datetime,
    source: ScreenSource,
) -> Section:
    """Lay out what got worse, failed, recovered or improved.

    The improvements are taken from the newest verdicts (``latest``). ``is_wanted`` says whether the
    reader asked for this scenario, testbed and these builds; ``since`` and ``moment`` are the same
    time, as the reader picks it and as a moment.
    """
    timelines = find_timelines(source.index, source.checkout()).everything
    changes = [
        _transition_news(timeline, transition, source)
        for timeline in timelines
        if is_wanted(timeline.subject)
        for transition in timeline.transitions
        if transition.by.started_at >= moment
    ]
    improved = latest[latest["verdict"] == Verdict.IMPROVEMENT.value]
    changes += _improved(improved[improved["started_at"] >= moment], moment, source)
    rows = tuple(_row(one, source) for one in sorted(changes, key=lambda one: one.place))
    title = f"Changed since {since.chosen_text}"
    if not rows:
        return Section(title, (Paragraph("Nothing got worse, failed, recovered or improved."),))
    blocks: list[Block] = [Table(title, _COLUMNS, rows[:_SHOWN])]
    if rest := rows[_SHOWN:]:
        cut = f", the first {_FOLDED}" if len(rest) > _FOLDED else ""
        table = Table("More changes", _COLUMNS, rest[:_FOLDED])
        blocks.append(Folded(f"{plural(len(rest), 'more change')}{cut}", (table,)))
    return Section(title, tuple(blocks))


def _row(one: _Change, source: ScreenSource) -> tuple[Cell | Inline, ...]:
    subject = one.subject
    sides = f"{subject.baseline} → {subject.contender} · {subject.testbed}"
    return (
        one.verdict,
        Cell(Link(subject.scenario, one.to), sides),
        one.text,
        Cell(
            When(one.at, f"{one.at:%Y-%m-%d}"),
            (source.ago(one.at), ", ", Link(f"run {one.run}", address("run", run=one.run))),
        ),
        one.now,
    )


def _transition_news(timeline: Timeline, transition: Transition, source: ScreenSource) -> _Change:
    """A run that opened an alert, opened it again, or resolved it."""
    by, ended = transition.by, transition.change.is_end
    stands = transition is timeline.transitions[-1] and not ended
    return _Change(
        subject=timeline.subject,
        verdict=Verdict.EQUIVALENT if ended or by.cause is None else by.cause.lead.verdict,
        text=_ended(timeline, transition) if ended else _worse(timeline, by, source),
        run=by.run_id,
        at=by.started_at,
        to=address("alerts", alert=timeline.subject.key),
        now=_now(timeline, stands=stands, ended=ended),
        stands=stands,
    )


def _worse(timeline: Timeline, by: RunVerdict, source: ScreenSource) -> str:
    if is_control(timeline) or by.cause is None:
        return alert_text(timeline).sentence()
    message = engine_message(by.run_id, source) if timeline.subject.area is Area.ENGINE else ""
    return message or cause_sentence(by.cause)


def _now(timeline: Timeline, *, stands: bool, ended: bool) -> str:
    if stands:
        return "still so"
    if timeline.is_over:
        return "not repeated" if timeline.is_not_repeated else "good"
    return "bad again" if ended else "over"


def _ended(timeline: Timeline, transition: Transition) -> str:
    earlier = (
        one.cause for one in reversed(timeline.run_verdicts) if one.place < transition.by.place
    )
    cause = next(one for one in earlier if one is not None)
    names = list(dict.fromkeys(render_name(part.metric, part.statistic)[1] for part in cause.parts))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    word = "Recovered" if transition.change is TransitionKind.RESOLVED else "Not repeated"
    return f"{word}: {', '.join(names[:_NAMED])}{more}"


def _improved(latest: pd.DataFrame, moment: datetime, source: ScreenSource) -> Iterator[_Change]:
    """What one run shows better in one area, and was not before a moment."""
    found: dict[tuple[str, AlertSubject], list[tuple[CausePart, VerdictRow]]] = {}
    since = since_when(source.index)
    for row in verdict_rows(latest):
        if since[row.question] >= moment:
            area = find_area(row.metric, Verdict.IMPROVEMENT)
            subject = AlertSubject(row.scenario, area, row.baseline, row.contender, row.testbed)
            effect = None if math.isnan(row.effect) else row.effect
            part = CausePart(row.metric, row.statistic, Verdict.IMPROVEMENT, effect, Action.WATCH)
            found.setdefault((row.run, subject), []).append((part, row))
    for (run, subject), parts in found.items():
        (cause,) = find_causes(part for part, _ in parts)
        begun = min(since[row.question] for _, row in parts)
        yield _Change(
            subject=subject,
            verdict=Verdict.IMPROVEMENT,
            text=cause_sentence(cause),
            run=run,
            at=parts[0][1].started_at.to_pydatetime(),
            to=address(
                "run", run=run, metric=render_name(cause.lead.metric, cause.lead.statistic)[1]
            ),
            now=f"better since {begun:%Y-%m-%d}",
        )
