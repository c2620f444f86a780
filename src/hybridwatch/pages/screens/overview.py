"""What the person on duty reads first: what is broken, what is new, where everything stands."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Final

import pandas as pd

from hybridwatch.analysis.alert_timeline import AlertSubject
from hybridwatch.analysis.alerts import Status
from hybridwatch.analysis.detection import Detection
from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.labels import plural
from hybridwatch.errors import TriageError
from hybridwatch.history.controls import ControlRun, find_newest, list_controls
from hybridwatch.history.overview_rows import (
    build_grid,
    current,
    render_name,
)
from hybridwatch.history.runs import latest_comparisons
from hybridwatch.pages.address import address
from hybridwatch.pages.document import (
    Block,
    Cell,
    ChoiceField,
    Column,
    Document,
    FieldKind,
    Filters,
    Folded,
    Grade,
    Inline,
    Line,
    Link,
    Notice,
    Paragraph,
    Section,
    Short,
    Table,
)
from hybridwatch.pages.query import ViewQuery
from hybridwatch.pages.screens.alerting import alerts_here
from hybridwatch.pages.screens.empty import broken_in, checkout_notice, empty_store
from hybridwatch.pages.screens.machine import machine_notice
from hybridwatch.pages.screens.overview_grid import standings
from hybridwatch.pages.screens.overview_news import news_section
from hybridwatch.pages.screens.screen import ScreenSource
from hybridwatch.pages.screens.unmeasured import gaps_here, gaps_notice
from hybridwatch.records.role import Role
from hybridwatch.reports.alert_text import describe_place, group_text
from hybridwatch.reports.caught import bugs_caught

_RUNS_BACK: Final = 16
_NAMED: Final = 3
_SINCE: Final[Mapping[str, str]] = {"1": "yesterday", "7": "a week ago", "30": "a month ago"}
_TITLE: Final = "hybridwatch"


def show(source: ScreenSource, query: ViewQuery) -> Document:
    """Show what holds of the scenarios, builds and testbeds that are asked for."""
    index = source.index
    runs = index.runs()
    filters = (
        query.many("Group", "group", _options(runs["group"])),
        query.many(
            "Build",
            "build",
            _options(runs["line"]),
            dict(zip(runs["build"], runs["line"], strict=True)),
        ),
        query.many("Testbed", "testbed", _options(runs["testbed"])),
    )
    since = query.one("Changed since", "since", _SINCE, "1")
    checkout = source.checkout()
    unmeasured = gaps_here(source)
    loud = (*gaps_notice(unmeasured), *broken_in(source), *checkout_notice(checkout))
    if runs.empty:
        return Document(_TITLE, (*empty_store(source), *gaps_notice(unmeasured)))
    controls = list_controls(index, checkout.scenarios)
    latest = _chosen(latest_comparisons(index), filters)
    rows = build_grid(current(latest), index, _RUNS_BACK)
    moment = source.now - timedelta(days=int(since.value))
    blocks: tuple[Block, ...] = (
        *_open_alerts(source),
        *loud,
        *machine_notice(source, moment),
        *_missed(controls),
        Filters((*filters, since)),
        news_section(latest, partial(_is_chosen, filters), since, moment, source),
        *standings(rows, latest, unmeasured, source),
        *_controls(controls, source, folded=bool(rows)),
    )
    return Document(_TITLE, blocks, _lead(runs, source))


def _options(names: pd.Series) -> Mapping[str, str]:
    return {str(name): str(name) for name in sorted(names.unique())}


def _chosen(frame: pd.DataFrame, filters: Sequence[ChoiceField]) -> pd.DataFrame:
    """Keep what is asked for."""
    group, build, testbed = (choice.chosen for choice in filters)
    kept = pd.Series(data=True, index=frame.index)
    if group:
        kept &= frame["group"].isin(group)
    if build:
        kept &= frame["baseline"].isin(build) | frame["contender"].isin(build)
    if testbed:
        kept &= frame["testbed"].isin(testbed)
    return frame[kept]


def _is_chosen(filters: Sequence[ChoiceField], subject: AlertSubject) -> bool:
    """Whether a subject is among what is asked for."""
    group, build, testbed = (set(choice.chosen) for choice in filters)
    return (
        (not group or subject.scenario.partition("/")[0] in group)
        and (not build or bool(build & {subject.baseline, subject.contender}))
        and (not testbed or subject.testbed in testbed)
    )


def _lead(runs: pd.DataFrame, source: ScreenSource) -> Line:
    newest = runs["started_at"].max().to_pydatetime()
    records = plural(source.index.counts["runs"], "record")
    return (
        f"{records} of {plural(runs['scenario'].nunique(), 'scenario')}, newest ",
        source.ago(newest),
        " · ",
        Short(source.results.resolve().name, str(source.results.resolve())),
    )


def _open_alerts(source: ScreenSource) -> Iterator[Block]:
    """Count the causes that have no answer, and lead to the newest ones."""
    try:
        found = [group for group in alerts_here(source) if group.status is Status.OPEN]
    except TriageError as error:
        yield Notice(FieldKind.LOUD, "The alerts cannot be told", tuple(str(error).splitlines()))
        return
    every = address("alerts")
    if not found:
        yield Paragraph(("No ", Link("alert", every), " is open."), quiet=True)
        return
    blocking = sum(group.rank is Action.BLOCK for group in found)
    line: list[Inline] = [
        Link(f"{plural(len(found), 'open alert')}", every),
        f", {blocking} of them would block{', the newest first' if len(found) > 1 else ''}: ",
    ]
    # Of one night the most urgent comes first, as it was.
    found.sort(key=lambda group: group.opened_by.started_at.date(), reverse=True)
    for nth, group in enumerate(found[:_NAMED]):
        text = group_text(group)
        size = f", {text.detail}" if len(group.current) > 1 and text.detail else ""
        name = f"{describe_place(group)}: {text.what.lower()}{size}"
        line += [", " if nth else "", Link(name, address("alerts", alert=group.key))]
        line += [" (opened ", source.ago(group.opened_by.started_at), ")"]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    yield Paragraph((*line, f"{more}."))


def _missed(controls: Sequence[ControlRun]) -> Iterator[Notice]:
    missed = [c for c in find_newest(controls).values() if c.detection is Detection.MISSED]
    if missed:
        lines = tuple(
            (Link(c.scenario, address("run", run=c.run)), f": green without {', '.join(c.lost)}")
            for c in missed
        )
        yield Notice(
            FieldKind.LOUD, f"{plural(len(missed), 'known-bad control')} not caught", lines
        )


def _controls(
    controls: Sequence[ControlRun], source: ScreenSource, *, folded: bool
) -> Iterator[Block]:
    """Runs that are red on purpose, and those of equal sides: kept apart, and said quietly."""
    newest = find_newest(controls).values()
    equal = [control for control in controls if control.role is Role.A_A]
    alarms = sum(control.regressions > 0 for control in equal)
    if not controls:
        return
    parts: list[Inline] = [bugs_caught(newest) if newest else "No known-bad control"]
    if equal:
        parts.append(f" · runs of equal sides with an alarm: {alarms} of {len(equal)}")
    parts += " · ", Link("does the suite see?", address("sees"))
    columns = (
        Column("seen"),
        Column("scenario, engine bad on purpose"),
        Column("by", wide=True, title="What told it from the healthy engine, with and without"),
        Column("measured"),
    )
    rows = tuple(
        (
            Grade(Verdict.EQUIVALENT, "caught")
            if control.detection is Detection.CAUGHT
            else Grade(Verdict.FAILED, "not caught")
            if control.detection is Detection.MISSED
            else "not asked",
            Cell(Link(control.scenario, address("run", run=control.run)), control.builds[1]),
            _seen(control),
            source.ago(control.started_at),
        )
        for control in sorted(newest, key=lambda c: (c.detection is Detection.CAUGHT, c.scenario))
    )
    table: Block = Table("Controls", columns, rows)
    if folded:
        table = Folded("Every known-bad control", (table,))
    yield Section("Controls", (Paragraph(tuple(parts)), *((table,) if rows else ())))


def _seen(control: ControlRun) -> str:
    """Say what the engine without its fix did otherwise."""
    names = []
    for one in control.alarms:
        metric, name = render_name(one.metric, one.statistic)
        if metric is not None and one.is_deterministic:
            sides = " → ".join(numbers.value(side, metric) for side in (one.old, one.new))
            names.append(f"{name} {sides}")
    return ", ".join(names[:_NAMED]) or "nothing"
