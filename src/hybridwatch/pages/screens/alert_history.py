"""The picture of an alert: the history of its leading metric, and the run that opened it."""

from collections.abc import Iterator, Sequence
from typing import Final

from hybridwatch.analysis.alert_timeline import RunVerdict
from hybridwatch.analysis.alerts import Alert
from hybridwatch.analysis.subject import Subject
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.database.frames import Series
from hybridwatch.history.lines import Line, build_lines, list_line_names
from hybridwatch.history.overview_rows import render_name
from hybridwatch.pages.address import address
from hybridwatch.pages.document import Block, Chart, Link, Paragraph, Section
from hybridwatch.pages.screens.histories import build_chart
from hybridwatch.pages.screens.machine import changes_on, with_machine
from hybridwatch.pages.screens.screen import ScreenSource
from hybridwatch.reports.figures.marks import mark_moment, mark_place

_NEWEST: Final = 50
"""Medians of each build, as on the scenario's own page."""
_FEWEST: Final = 2


def history_section(alert: Alert, source: ScreenSource) -> Iterator[Block]:
    """Draw the leading metric of both builds over time; over releases where a build has one run."""
    subject, opened = alert.subject, alert.opened_by
    lead = alert.cause.lead
    metric, _ = render_name(lead.metric, lead.statistic)
    if metric is None:
        return
    charted = Subject(metric, lead.statistic)
    series = source.index.series(subject.scenario, subject.testbed, metric.id, lead.statistic)
    over_releases, names = _names(series, (subject.contender, subject.baseline))
    if not names:
        return
    machines = () if over_releases else changes_on(subject.testbed, source.index)
    lines = build_lines(
        series,
        metric,
        newest=_NEWEST,
        over_releases=over_releases,
        builds=names,
        settings=source.index.settings(subject.scenario),
        machines=machines,
    )
    chart = build_chart(charted, lines, subject.scenario, over_releases=over_releases)
    chart = with_machine(chart, machines)
    _mark(chart, lines, opened, over_releases=over_releases)
    view = address(
        "scenario",
        scenario=subject.scenario,
        testbed=subject.testbed,
        metric=charted.label,
        build=dict.fromkeys((subject.baseline, subject.contender)),
    )
    hint = "The upright line is the run that opened the alert. "
    way = Paragraph((hint, Link("The whole history", view), "."), quiet=True)
    lost = lead.verdict is Verdict.FAILED or lead.verdict is Verdict.MISSING
    title = f"{charted.label} until then" if lost else f"When {charted.label} changed"
    yield Section(title, (chart, way))


def _names(series: Series, builds: Sequence[str]) -> tuple[bool, tuple[str, ...]]:
    """Choose the lines: builds over time, or over releases if the contender has a single run."""
    levels = series.levels[series.levels["line"].isin(builds)]
    over_releases = int((levels["line"] == builds[0]).sum()) < _FEWEST
    found = dict.fromkeys(list_line_names(levels, over_releases=over_releases).tolist())
    return over_releases, tuple(found)


def _mark(chart: Chart, lines: Sequence[Line], opened: RunVerdict, *, over_releases: bool) -> None:
    """Draw an upright line where the alert opened; over releases only if that left a value."""
    if not over_releases:
        mark_moment(chart.figure, opened.started_at)
        return
    for line in lines:
        for place in line.levels.loc[line.levels["run"] == opened.run_id, "place"][-1:]:
            mark_place(chart.figure, float(place))
