"""What changed recently, cause by cause, and the month at one look, night by night.

A row of the news is what one run changed, with that run's own numbers. Bad news and its end lead to
the alert, which has the commits and the command that searches them; an improvement, which has no
alert, to its run. A night begins at noon, UTC; controls are bad on purpose, and are left out.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
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
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.history.alerts import find_timelines
from hybridwatch.history.machine_changes import machine_changes
from hybridwatch.history.overview_rows import (
    VerdictRow,
    render_name,
    settled_runs,
    since_when,
    verdict_rows,
)
from hybridwatch.history.runs import RunRow, runs_by_id
from hybridwatch.pages.address import Address, address
from hybridwatch.pages.document import (
    Block,
    Cell,
    ChoiceField,
    Column,
    Folded,
    Grade,
    Inline,
    Link,
    NightCell,
    Nights,
    Paragraph,
    Row,
    Section,
    Short,
    Table,
    When,
)
from hybridwatch.pages.screens.screen import ScreenSource, engine_message
from hybridwatch.records.identity import compares_releases
from hybridwatch.reports.alert_text import alert_text, is_control

_SHOWN: Final = 12
"""Changes that are shown at once; a bad night has hundreds."""
_FOLDED: Final = 100
_NAMED: Final = 3
_COLUMNS: Final = (
    "verdict",
    "scenario, baseline → contender",
    Column("what happened", wide=True),
    "changed",
    "now",
)


@dataclass(frozen=True, slots=True)
class _Change:
    """What one run changed, in its own numbers; ``stands`` if it is bad, and still is."""

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
        loudness = ORDER.index(self.verdict) if self.stands else 0
        return (not self.stands, loudness, -self.at.timestamp())


def news_section(
    latest: pd.DataFrame,
    is_wanted: Callable[[AlertSubject], bool],
    since: ChoiceField,
    moment: datetime,
    source: ScreenSource,
) -> Section:
    """Lay out what got worse, failed, recovered or, of the newest verdicts, improved.

    ``since`` and ``moment`` are the same time, as the reader picks it and as a moment.
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


def _row(one: _Change, source: ScreenSource) -> Row:
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
        name = render_name(cause.lead.metric, cause.lead.statistic)[1]
        yield _Change(
            subject=subject,
            verdict=Verdict.IMPROVEMENT,
            text=cause_sentence(cause),
            run=run,
            at=parts[0][1].started_at.to_pydatetime(),
            to=address("run", run=run, metric=name),
            now=f"better since {begun:%Y-%m-%d}",
        )


_NIGHTS: Final = 30
_ROWS: Final = 40
_NOON: Final = timedelta(hours=12)
_Place = tuple[str, str]
_Runs = Mapping[date, list[RunRow]]


def night_blocks(source: ScreenSource, is_wanted: Callable[[RunRow], bool]) -> Iterator[Block]:
    """Draw the last nights up to the newest run; nothing without a verdict in them."""
    rows = [row for row in runs_by_id(source.index).values() if not row.is_control and row.verdict]
    wanted = [row for row in rows if is_wanted(row)]
    if not wanted:
        return
    last = max(_night(row.started_at) for row in wanted)
    nights = tuple(last - timedelta(days=back) for back in reversed(range(_NIGHTS)))
    places: dict[_Place, dict[date, list[RunRow]]] = {}
    for row in reversed(wanted):
        if (night := _night(row.started_at)) >= nights[0]:
            runs = places.setdefault((row.scenario, row.testbed), {})
            runs.setdefault(night, []).append(row)
    moved = {(one.testbed, _night(one.at)) for one in machine_changes(source.index)}
    settled = settled_runs(source.index)
    order = sorted(places, key=lambda place: (_loudness(places[place], settled), place))
    several = len({testbed for _, testbed in places}) > 1
    drawn = tuple(
        (
            _name(place, with_testbed=several),
            tuple(_cells(places[place], place, nights, moved, settled)),
        )
        for place in order[:_ROWS]
    )
    caption = f"Night by night up to {nights[-1]}, what is loudest now first"
    yield Nights(caption, nights, drawn)
    yield Paragraph(_legend(drawn, len(order) - _ROWS), quiet=True)


def _night(moment: datetime) -> date:
    return (moment - _NOON).date()


def _worst(rows: Sequence[RunRow], settled: Mapping[str, int]) -> tuple[Verdict, RunRow]:
    """Find the worst run of a night; one that is settled counts as equivalent."""

    def verdict(row: RunRow) -> Verdict:
        is_settled = row.verdict is Verdict.INCONCLUSIVE and row.record in settled
        return Verdict.EQUIVALENT if is_settled else row.verdict or Verdict.NOT_COMPARABLE

    worst = min(rows, key=lambda row: (ORDER.index(verdict(row)), -settled.get(row.record, 0)))
    return verdict(worst), worst


def _loudness(runs: _Runs, settled: Mapping[str, int]) -> int:
    verdict, _ = _worst(runs[max(runs)], settled)
    return ORDER.index(verdict)


def _name(place: _Place, *, with_testbed: bool) -> Inline | tuple[Inline, ...]:
    scenario, testbed = place
    link = Link(scenario, address("scenario", scenario=scenario, testbed=testbed))
    return (link, " \N{MIDDLE DOT} ", Short(testbed)) if with_testbed else link


def _cells(
    runs: _Runs,
    place: _Place,
    nights: Sequence[date],
    moved: set[tuple[str, date]],
    settled: Mapping[str, int],
) -> Iterator[NightCell]:
    for night in nights:
        is_new = (place[1], night) in moved
        machine = ", the machine changed" if is_new else ""
        found = runs.get(night, ())
        if not found:
            yield NightCell(None, f"{night}: not measured{machine}", is_machine_new=is_new)
            continue
        verdict, row = _worst(found, settled)
        undecided = settled.get(row.record, 0) if verdict is Verdict.EQUIVALENT else 0
        of_releases = any(len(one.lines) > 1 and compares_releases(*one.lines) for one in found)
        several = f", the worst of {len(found)} runs" if len(found) > 1 else ""
        but = f" but for {plural(undecided, 'undecided metric')}" if undecided else ""
        text = f"{night}: {verdict.value}{but}, {' → '.join(row.builds)}{several}{machine}"
        to = address("run", run=row.run)
        yield NightCell(verdict, text, to, is_new, of_releases, is_partly_open=undecided > 0)


def _legend(
    drawn: Sequence[tuple[object, Sequence[NightCell]]], left_out: int
) -> tuple[Inline, ...]:
    cells = [cell for _, row in drawn for cell in row]
    shown = {cell.verdict for cell in cells}
    grades = [Grade(verdict, verdict.value) for verdict in ORDER if verdict in shown]
    line = tuple(part for grade in grades for part in (grade, "  "))
    words = ["· not measured"] if None in shown else []
    words += ["✔?: some metric undecided"] if any(c.is_partly_open for c in cells) else []
    words += ["line above: the machine changed"] if any(c.is_machine_new for c in cells) else []
    words += ["line below: two releases compared"] if any(c.is_of_releases for c in cells) else []
    words += [f"{plural(left_out, 'quieter scenario')} not drawn"] if left_out > 0 else []
    return (*line, "; ".join(words))
