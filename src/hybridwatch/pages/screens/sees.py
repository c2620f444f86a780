"""The screen "Does the suite see?": controls, false alarms, and how often our rules are right."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from hybridwatch.analysis.calibration import Calibration, Figure, FigureForm, share
from hybridwatch.analysis.detection import Detection
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.errors import ExportError
from hybridwatch.history.controls import ControlRun, bad_readings, find_newest, list_controls
from hybridwatch.metrics import Kind, find_metric
from hybridwatch.pages.address import address
from hybridwatch.pages.document import (
    Block,
    Cell,
    Column,
    Command,
    Document,
    Facts,
    Folded,
    Grade,
    Inline,
    Line,
    Link,
    Notice,
    Paragraph,
    Row,
    Section,
    Table,
)
from hybridwatch.pages.query import ViewQuery
from hybridwatch.pages.screens.screen import (
    ScreenSource,
    broken_in,
    checkout_notice,
    empty_store,
    missed_controls,
)
from hybridwatch.records.identity import Role
from hybridwatch.scenarios.scenario import Scenario

_MARKS: Final[Mapping[Detection, Inline]] = {
    Detection.MISSED: Grade(Verdict.FAILED, "not caught"),
    Detection.CAUGHT: Grade(Verdict.EQUIVALENT, "caught"),
    Detection.NOT_ASKED: "not asked",
}
_ALARMS_SHOWN: Final = 20
"""A/A runs with an alarm that are listed, the newest."""


def show(source: ScreenSource, query: ViewQuery) -> Document:  # noqa: ARG001 (nothing can be chosen)
    """Show what the controls, the runs of equal sides and the calibration say of the suite."""
    checkout = source.checkout()
    controls = list_controls(source.index, checkout.scenarios)
    newest = find_newest(controls)
    equal = [control for control in controls if control.role is Role.A_A]
    calibration: Calibration | None = None
    trouble: tuple[Notice, ...] = ()
    try:
        calibration = checkout.calibration()
    except ExportError as error:
        trouble = (Notice("The calibration cannot be read", (str(error),)),)
    blocks: list[Block] = [*broken_in(source), *checkout_notice(checkout)]
    if source.index.runs().empty:
        blocks = [*empty_store(source), *checkout_notice(checkout)]
    passed = ": without {} the engine passed as if it were healthy"
    blocks += missed_controls(newest.values(), passed)
    blocks += [
        Facts(_summary(newest, checkout.scenarios, equal, calibration)),
        Section("Known-bad controls", tuple(_known_bad(newest, checkout.scenarios, source))),
        Section("Equal sides (A/A)", tuple(_equal(equal, source))),
        Section("How often the rules are right", trouble or tuple(_calibrated(calibration))),
    ]
    lead = "A suite that is always green proves nothing: here is what it was shown, and saw."
    return Document("Does the suite see?", tuple(blocks), lead=lead)


def _waiting(newest: Mapping[str, ControlRun], scenarios: Mapping[str, Scenario]) -> list[Scenario]:
    return [one for one in scenarios.values() if one.has_known_bad and one.id not in newest]


def _summary(
    newest: Mapping[str, ControlRun],
    scenarios: Mapping[str, Scenario],
    equal: Sequence[ControlRun],
    calibration: Calibration | None,
) -> tuple[tuple[str, Line], ...]:
    judged = [one for one in newest.values() if one.detection is not Detection.NOT_ASKED]
    caught = sum(control.detection is Detection.CAUGHT for control in judged)
    promised = calibration.promised if calibration else ()
    met = sum(bool(figure.met) for figure in promised)
    return (
        ("Known-bad controls caught", f"{caught} of {len(judged)}" if judged else "none run"),
        ("Scenarios without a control run", str(len(_waiting(newest, scenarios)))),
        ("A/A runs with a false alarm", _rate(equal)),
        ("Promises of the rules kept", f"{met} of {len(promised)}" if promised else "not measured"),
    )


def _known_bad(
    newest: Mapping[str, ControlRun], scenarios: Mapping[str, Scenario], source: ScreenSource
) -> Iterator[Block]:
    if newest:
        yield controls_table(newest.values(), source)
        yield Paragraph(
            "The newest known-bad control of each scenario: the same release with and without the "
            "fix that the scenario guards. Times do not count.",
            quiet=True,
        )
    else:
        yield Paragraph("No run has been made without a fix yet:")
        yield Command("hybridwatch run smoke --known-bad")
    if waiting := _waiting(newest, scenarios):
        rows = tuple((scenario.id, scenario.fix) for scenario in waiting)
        heads = ("scenario", "fix")
        title = f"{plural(len(waiting), 'scenario')} without a control run"
        yield Folded(title, (Table("Scenarios without a control run", heads, rows),))


def controls_table(newest: Iterable[ControlRun], source: ScreenSource) -> Table:
    """Say what showed that each known-bad control is not healthy; the missed first."""
    ranks = {detection: rank for rank, detection in enumerate(_MARKS)}
    found = sorted(newest, key=lambda c: (ranks[c.detection or Detection.NOT_ASKED], c.scenario))
    columns = (
        "seen",
        "scenario, contender",
        Column("contracts", wide=True, title="Rules that the engine without the fix broke"),
        Column("answers", wide=True, title="Right answers, with and without the fix"),
        "when",
    )
    return Table("Newest known-bad controls", columns, tuple(_seen(c, source) for c in found))


def _seen(control: ControlRun, source: ScreenSource) -> Row:
    return (
        _MARKS[control.detection or Detection.NOT_ASKED],
        Cell(Link(control.scenario, address("run", run=control.run)), control.builds[1]),
        _signs(control, Kind.EXACT) or "no contract broken",
        _signs(control, Kind.PROPORTION) or "no answers lost",
        _when(control, source),
    )


def _when(control: ControlRun, source: ScreenSource) -> Cell:
    return Cell(source.ago(control.started_at), f"run\N{NO-BREAK SPACE}{control.run}")


def _signs(control: ControlRun, kind: Kind) -> str:
    lines = []
    for one in bad_readings(control, kind):
        metric = find_metric(one.metric)
        shown = (
            one.verdict.value
            if math.isnan(one.new)
            else f"{numbers.value(one.old, metric)} → {numbers.value(one.new, metric)}"
        )
        lines.append(f"{one.metric.partition('.')[2]} {shown}")
    return "\n".join(lines)


def _equal(equal: Sequence[ControlRun], source: ScreenSource) -> Iterator[Block]:
    if not equal:
        yield Paragraph("No build has been measured against itself in this store yet:")
        yield Command("hybridwatch run smoke --build cpu-0.27.1 --build cpu-0.27.1")
        return
    alarmed = [control for control in equal if control.regressions]
    comparisons = sum(control.comparisons for control in equal)
    alarms = sum(control.regressions for control in equal)
    yield Paragraph(
        f"{plural(len(equal), 'run')} of one build against itself, {comparisons} comparisons: "
        f"{_rate(equal)} runs gave a false alarm, {plural(alarms, 'comparison')} called a "
        "regression. The interval is Wilson's, 95 %."
    )
    if alarmed:
        columns = ("scenario", "build", Column("called a regression", wide=True), "when")
        shown = tuple(
            (
                Link(control.scenario, address("run", run=control.run)),
                control.builds[0],
                ", ".join(f"{alarm.metric} {alarm.statistic}" for alarm in control.alarms),
                _when(control, source),
            )
            for control in alarmed[: -_ALARMS_SHOWN - 1 : -1]
        )
        yield Table("Newest false alarms", columns, shown)


def _rate(equal: Sequence[ControlRun]) -> str:
    """Say how many runs of equal sides gave an alarm, with the interval of that share."""
    if not equal:
        return "none run"
    alarmed = [control.regressions > 0 for control in equal]
    found = share("a-a", "", alarmed)
    return f"{sum(alarmed)} of {len(equal)} ({_number(found, found.value)}, {_span(found)})"


def _calibrated(calibration: Calibration | None) -> Iterator[Block]:
    if calibration is None:
        yield Paragraph("There is no docs/calibration.json in this checkout. It is made by:")
        yield Command("python -m hybridwatch_lab.calibration")
        return
    broken = [figure for figure in calibration.promised if not figure.met]
    if broken:
        lines = tuple(
            f"{figure.what}: {_number(figure, figure.value)}, {_bound(figure)}" for figure in broken
        )
        yield Notice(f"{plural(len(broken), 'promise')} not kept", lines)
    columns = (
        "kept",
        "promised",
        Column("measured", number=True),
        Column("interval", number=True, title="Holds the truth 95 times in 100"),
        Column("bound", number=True),
        Column("simulations", number=True),
    )
    rows = tuple(
        ("\u2714 yes" if f.met else "\u2716 no", *_figure(f)) for f in calibration.promised
    )
    yield Table("What was promised of the rules", columns, rows)
    for title, figures in calibration.sections:
        if free := [figure for figure in figures if figure.bound is None]:
            heads = ("figure", *columns[2:])
            table = Table(title, heads, tuple(map(_figure, free)))
            yield Folded(f"{title} ({len(free)} more)", (table,))
    yield Command(calibration.command, "Simulated where the truth is known, by")


def _figure(figure: Figure) -> Row:
    limit = figure.bound.limit if figure.bound else None
    return (
        figure.what,
        Cell(_number(figure, figure.value), raw=figure.value),
        _span(figure),
        Cell(_bound(figure), raw=limit),
        Cell(f"{figure.simulations:,}", raw=figure.simulations),
    )


def _span(figure: Figure) -> str:
    low, high = _number(figure, figure.low), _number(figure, figure.high)
    return f"{low.removesuffix(' %')} to {high}"


def _bound(figure: Figure) -> str:
    bound = figure.bound
    if bound is None:
        return numbers.ABSENT
    return f"at {'most' if bound.at_most else 'least'} {_number(figure, bound.limit)}"


def _number(figure: Figure, value: float) -> str:
    if not math.isfinite(value):
        return numbers.ABSENT
    return f"{100 * value:.1f} %" if figure.form is FigureForm.SHARE else f"{value:.3g}"
