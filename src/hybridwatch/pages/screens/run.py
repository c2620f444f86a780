"""One run: every verdict, what to doubt, answers that changed, trials, curves, how to repeat it."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from hybridwatch.analysis.crossing import build_curve
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import (
    Comparison,
    Flip,
    LoadPoint,
    Report,
    SideCurve,
    Spread,
    Tradeoff,
    find_line_verdict,
    worst_first,
)
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.numbers import (
    ABSENT,
    describe_basis,
    format_centers,
    name_of,
    plural,
)
from hybridwatch.history.alerts import find_timelines
from hybridwatch.history.entry import Entry, Trials, load_trials
from hybridwatch.history.runs import RunRow, controls_last, runs_by_id
from hybridwatch.pages.address import address, builds_address
from hybridwatch.pages.document import (
    Block,
    Cell,
    Chart,
    ChoiceField,
    Code,
    Column,
    Columns,
    Command,
    Document,
    Filters,
    Folded,
    Inline,
    Line,
    Link,
    Notice,
    Paragraph,
    Row,
    Section,
    Table,
    When,
    by_column,
)
from hybridwatch.pages.query import ViewQuery
from hybridwatch.pages.screens.runs import every_run
from hybridwatch.pages.screens.screen import ScreenSource, broken_notice, empty_store
from hybridwatch.records.file_parts import NO_DIGEST
from hybridwatch.records.run import Run
from hybridwatch.records.store import Broken
from hybridwatch.reports.alert_text import alert_text
from hybridwatch.reports.figures.base import SIDES, figure_trials
from hybridwatch.reports.figures.curve import figure_curves
from hybridwatch.reports.reason_text import (
    KNOBS,
    cost_line,
    describe_interactivity,
    describe_objective,
    describe_output,
    rate,
    tradeoff_lines,
)
from hybridwatch.reports.sentence import (
    headline,
    reason,
    render_flips,
    render_notes,
    render_repeat_command,
)
from hybridwatch.scenarios.scenario import ACCURACY

_SIBLINGS: Final = 100
"""Runs of the same scenario that can be changed to from here, the newest."""
_NOTES_OPEN: Final = 4
_FLIPS_OPEN: Final = 3
_FLIPS_SHOWN: Final = 20
_LATE: Final = "More answers that changed"
_NUMBERS: Final = ("baseline", "contender", "change", "interval", "p adjusted", "n")
_CANDIDATES: Final = 10
"""Runs that are named where an id is not whole."""
ALL: Final = "all"
_CURVES: Final = "Throughput against interactivity"
_LOADS: Final = "Every load"
_HINT: Final = (
    "Up and to the right is better. A point is the median of the trials under one load, which "
    "stands next to it; a band holds the middle four fifths of them."
)
_CROSSED: Final = " The curves cross in the grey strip."
_Of = Callable[[LoadPoint], Spread | None]


def show(source: ScreenSource, query: ViewQuery) -> Document:
    """Show the chosen run, or the newest that is not bad on purpose."""
    rows = runs_by_id(source.index)
    if not rows:
        return Document("Run", empty_store(source))
    chosen = _choose(rows, query)
    entry = source.read(source.results / rows[chosen.value].record)
    if isinstance(entry, Broken):
        _metric((), None, query)
        return Document("Run", (Filters((chosen,)), broken_notice([entry])))
    everything = load_trials(entry)
    metric = _metric({trials.subject.label for trials in everything}, entry, query)
    blocks = (
        Filters((chosen,)),
        _ways(entry, metric.default or metric.value, source),
        *_entry(entry, metric.value, source.checkout().policy.price_per_hour),
        *_trials(everything, metric),
    )
    return Document(entry.run.scenario.id, blocks, lead=_lead(entry))


def _choose(rows: Mapping[str, RunRow], query: ViewQuery) -> ChoiceField:
    wanted = "".join(query.address.values("run")[-1:])
    fitting = [row for name, row in rows.items() if wanted and name.startswith(wanted)]
    seen = rows.get(wanted) or (fitting[0] if len(fitting) == 1 else None)
    if seen is not None:
        query.expand("run", seen.run)
    scenario = (seen or controls_last(rows.values())[0]).scenario
    alike = controls_last(row for row in rows.values() if row.scenario == scenario)[:_SIBLINGS]
    if seen is not None and seen not in alike:
        alike.append(seen)
    return query.subject(
        "Run", "run", {row.run: row.named for row in alike}, _instead(rows, fitting)
    )


def _instead(rows: Mapping[str, RunRow], fitting: Sequence[RunRow]) -> tuple[Line, ...]:
    """Name the runs whose ids begin like the one in the address, and lead to all."""
    if not fitting:
        return (every_run(rows),)
    more = f", the newest {_CANDIDATES}" if len(fitting) > _CANDIDATES else ""
    named = (Link(row.named, address("run", run=row.run)) for row in fitting[:_CANDIDATES])
    return (f"{len(fitting)} runs have an id that begins so{more}:", *named, every_run(rows))


def _metric(series: Collection[str], entry: Entry | None, query: ViewQuery) -> ChoiceField:
    """Let the reader pick what is drawn; without a wish the worst, which a record never changes."""
    worst = worst_first(entry.report.comparisons) if entry and entry.report else []
    names = [*(name for name in map(name_of, worst) if name in series), *sorted(series)]
    options = {**dict.fromkeys(names, ""), ALL: ""}
    labels = {name: "every metric" if name == ALL else name for name in options}
    return query.one("Metric", "metric", labels, next(iter(labels)))


def _lead(entry: Entry) -> Line:
    run = entry.run
    builds = " → ".join(build.label for build in run.builds)
    return (
        f"version {run.scenario.version} · {builds} · ",
        When(run.started_at),
        f" · {run.testbed.id} · run {run.id}" + ("" if run.sha256 else f" · {NO_DIGEST}"),
    )


def _ways(entry: Entry, metric: str, source: ScreenSource) -> Paragraph:
    """Lead to what else is known of the run: its history, its comparison and its alerts."""
    run = entry.run
    history = address(
        "scenario",
        scenario=run.scenario.id,
        testbed=run.testbed.id,
        metric=metric if metric != ALL else None,
        build=dict.fromkeys(build.label for build in run.builds),
    )
    line: list[Inline] = ["See ", Link("the history of these builds", history)]
    if len(run.builds) > 1:
        sides = {role: f"{run.id}#{at}" for at, role in enumerate(("baseline", "contender"))}
        compared = address("compare", scenario=run.scenario.id, **sides)
        line += [", ", Link("the comparison of its two sides", compared)]
        everywhere = builds_address(*(build.label for build in run.builds))
        line += [", ", Link("of these builds everywhere", everywhere)]
    for timeline in find_timelines(source.index, source.checkout()).bad_in.get(run.id, ()):
        way = address("alerts", alert=timeline.subject.key)
        line += [", ", Link(f"alert: {alert_text(timeline).what.lower()}", way)]
    return Paragraph((*line, "."), quiet=True)


def _entry(entry: Entry, metric: str, price_per_hour: float | None) -> Iterator[Block]:
    report = entry.report
    if report is None:
        yield Notice("No verdicts", (entry.trouble,), quiet=True)
        yield from curve_blocks(entry.run, None)
    else:
        answers = tuple(changed_answers(report))
        is_wanted = metric.startswith(f"{ACCURACY}.")
        yield from verdict_blocks(report)
        yield from answers if is_wanted else ()
        yield comparisons_table(worst_first(report.comparisons))
        if cost := cost_line(report, price_per_hour):
            yield Paragraph(cost, quiet=True)
        yield from curve_blocks(entry.run, report.tradeoff)
        yield from note_blocks(report)
        yield from () if is_wanted else answers
    path = Command(str(entry.path), "Everything measured is in")
    yield Section("Repeat it", (Command(render_repeat_command(entry)), path))


def verdict_blocks(report: Report) -> Iterator[Paragraph]:
    """Say the verdict in a sentence, and the reason if one is known."""
    yield Paragraph((find_line_verdict(report), "  ", headline(report)))
    if report.attribution is not None:
        yield Paragraph(reason(report.attribution))


def note_blocks(report: Report, but: str = "") -> Iterator[Block]:
    """List what to know before the report is believed, without the list of one title."""
    for title, lines in render_notes(report):
        notes = tuple(Paragraph(line, quiet=True) for line in lines)
        if title != but:
            many = len(lines) > _NOTES_OPEN
            yield Folded(f"{title} ({len(lines)})", notes) if many else Section(title, notes)


def comparisons_table(
    comparisons: Sequence[Comparison],
    caption: str = "Every comparison",
    places: Sequence[Cell] = (),
) -> Table:
    """Lay out comparisons as they are ordered, of several scenarios with the place of each."""
    names = ["verdict", "metric", *(["scenario"] if places else [])]
    columns: tuple[Column | str, ...] = (*names, *(Column(name, number=True) for name in _NUMBERS))
    rows = [_comparison(comparison) for comparison in comparisons]
    for at, place in enumerate(places):
        rows[at] = (*rows[at][:2], place, *rows[at][2:])
    return Table(caption, columns, tuple(rows))


def _comparison(comparison: Comparison) -> Row:
    old, new = format_centers(comparison)
    sides = (comparison.baseline, comparison.contender)
    raws = [None if side is None else side.center for side in sides]
    return (
        comparison.verdict,
        Cell(name_of(comparison), title="\n".join(comparison.doubts)),
        Cell(old, raw=raws[0]),
        Cell(new, raw=raws[1]),
        Cell(numbers.change(comparison), describe_basis(comparison), raw=comparison.effect),
        numbers.interval(comparison) or numbers.ABSENT,
        Cell(numbers.p_value(comparison.p_adjusted), raw=comparison.p_adjusted),
        numbers.n(comparison),
    )


def changed_answers(report: Report) -> Iterator[Block]:
    """Show the answers that only one side got right, side by side; nothing without any.

    A phone shows one of each metric until its reader opens the others.
    """
    blocks: list[Block] = []
    for metric, flips in render_flips(report):
        shown = flips[:_FLIPS_SHOWN]
        line = f"{metric.id}: {plural(len(flips), 'document')}, lost ones first"
        more = f"; the first {len(shown)} are here" if len(shown) < len(flips) else ""
        blocks.append(Paragraph(line + more))
        blocks += map(_flip, shown[:1])
        if late := tuple(map(_flip, shown[1:_FLIPS_OPEN])):
            title = "" if any(isinstance(one, Folded) and one.on_phone for one in blocks) else _LATE
            blocks.append(Folded(title, late, on_phone=True))
        if rest := shown[_FLIPS_OPEN:]:
            blocks.append(Folded(f"{len(rest)} more of {metric.id}", tuple(map(_flip, rest))))
    if blocks:
        yield Section("Answers that changed", tuple(blocks))


def _flip(flip: Flip) -> Columns:
    answers = {"baseline": flip.baseline, "contender": flip.contender}
    texts = (
        ("prompt", flip.baseline.prompt),
        ("expected", flip.baseline.target),
        *((f"{k}: {'right' if a.correct else 'wrong'}", a.response) for k, a in answers.items()),
    )
    return Columns(tuple((Code(text, title),) for title, text in texts))


def _trials(everything: list[Trials], metric: ChoiceField) -> Iterator[Block]:
    chosen = [one for one in everything if metric.value in {ALL, one.subject.label}]
    if chosen:
        hint = Paragraph("A point is a trial, a bar the median of a side.", quiet=True)
        charts = tuple((trials_chart(series),) for series in chosen)
        yield Section("Every trial", (Filters((metric,)), hint, Columns(charts)))


def trials_chart(trials: Trials) -> Chart:
    """Draw every trial of one metric of one run."""
    subject, run = trials.subject, trials.entry.run
    origin = (trials.entry.path.name, run.testbed.id)
    medians = ", ".join(
        f"{side.build} {numbers.value(side.median, subject.metric)}" for side in trials.sides
    )
    rows = [
        (run.id, run.started_at, side.build, side.side, trial, value, *origin)
        for side in trials.sides
        for trial, value in enumerate(side.values, start=1)
    ]
    names = ("run", "started", "build", "side", "trial", "value", "record", "testbed")
    return Chart(
        subject.label,
        figure_trials(trials),
        f"{plural(len(rows), 'trial')}; median: {medians}.",
        by_column(names, rows),
    )


def curve_blocks(run: Run, found: Tradeoff | None) -> Iterator[Block]:
    """Show the curves of a run, of one build too; nothing of a run that swept no loads."""
    alone = build_curve(OneSide(run, 0)) if found is None and len(run.builds) == 1 else None
    sides = (found.baseline, found.contender) if found else (alone,) if alone else ()
    if not sides:
        return
    crossings = found.crossings if found else ()
    hint = _HINT + (_CROSSED if crossings else "")
    if objective := describe_objective(sides[0]):
        hint += f" Goodput counts the requests with {objective}."
    lines = map(Paragraph, tradeoff_lines(found) if found else ())
    chart, table = _curve_chart(sides, crossings), _loads_table(sides)
    yield Section(_CURVES, (*lines, Paragraph(hint, quiet=True), chart, table))


def _curve_chart(sides: Sequence[SideCurve], crossings: Sequence[tuple[float, float]]) -> Chart:
    rows = [(side, point) for side in sides for point in side.points]
    ends = "; ".join(f"{side.build} from {_end(side, 0)} to {_end(side, -1)}" for side in sides)
    return Chart(
        _CURVES,
        figure_curves(sides, crossings),
        f"{plural(len(sides[0].points), 'load')}: {ends}.",
        {
            "build": [side.build for side, _ in rows],
            sides[0].knob: [point.load for _, point in rows],
            "trials": [side.trials for side, _ in rows],
            **_columns("interactivity", [point.interactivity for _, point in rows]),
            **_columns("throughput", [point.throughput for _, point in rows]),
            **_columns("goodput", [point.goodput for _, point in rows]),
            **_columns("joules per token", [point.joules_per_token for _, point in rows]),
        },
    )


def _end(side: SideCurve, at: int) -> str:
    point = side.points[at]
    throughput, interactivity = point.throughput.middle, point.interactivity.middle
    given, seen = describe_output(side), describe_interactivity(side)
    return f"{rate(throughput)} {given} at {rate(interactivity)} {seen}"


def _columns(name: str, spreads: Sequence[Spread | None]) -> dict[str, Sequence[object]]:
    return {
        name: [one and one.middle for one in spreads],
        f"{name} low": [one and one.low for one in spreads],
        f"{name} high": [one and one.high for one in spreads],
    }


def _loads_table(sides: Sequence[SideCurve]) -> Table:
    known = list(_known_of(sides))
    headings = [KNOBS.get(sides[0].knob, sides[0].knob), "side", *(name for name, _ in known)]
    columns = tuple(Column(name, number=name != "side") for name in headings)
    loads = sorted({point.load for side in sides for point in side.points})
    rows = [
        (
            Cell(f"{load:g}", raw=load),
            SIDES[at],
            *(_spread_cell(spread_of(point)) for _, spread_of in known),
        )
        for load in loads
        for at, side in enumerate(sides)
        for point in side.points
        if point.load == load
    ]
    return Table(_LOADS, columns, tuple(rows))


def _known_of(sides: Sequence[SideCurve]) -> Iterator[tuple[str, _Of]]:
    """Name what is known of the points, with its unit; what no trial gives has no column."""
    first = sides[0]
    points = [point for side in sides for point in side.points]
    yield describe_interactivity(first), lambda point: point.interactivity
    yield describe_output(first), lambda point: point.throughput
    if any(point.goodput is not None for point in points):
        yield "goodput, req/s", lambda point: point.goodput
    if any(point.joules_per_token is not None for point in points):
        yield "J per token", lambda point: point.joules_per_token


def _spread_cell(found: Spread | None) -> Cell:
    if found is None:
        return Cell(ABSENT)
    bounds = f"{rate(found.low)} to {rate(found.high)}"
    return Cell(rate(found.middle), raw=found.middle, title=bounds)
