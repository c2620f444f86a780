"""A comparison laid open, and whether a stored verdict was had again.

All it takes to compute the verdict again by hand: numbers are in base units, with more digits than
the table has, since two values that look alike may rank apart.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hybridwatch.analysis.compare import find_band
from hybridwatch.analysis.pair import Blocks, build_pair
from hybridwatch.analysis.power import level_of
from hybridwatch.analysis.replay import Deviation, VerdictReplay
from hybridwatch.analysis.run_noise import least_noise, start_noise
from hybridwatch.analysis.subject import OneSide, Subject
from hybridwatch.analysis.verdict import BY_START, ORDER, Comparison, Design, Report, Verdict
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.numbers import describe_change, name_of, plural
from hybridwatch.analysis.wording.report_json import REPORT_SCHEMA, to_json
from hybridwatch.metrics import Direction, Kind
from hybridwatch.reports import sentence
from hybridwatch.reports.escape import one_line
from hybridwatch.reports.reason_text import because
from hybridwatch.reports.table import STYLES, indented

_RULES: Final[Mapping[str, str]] = {
    "exact": "a count without noise needs no test; of a contract the worst trials are compared",
    "Mann-Whitney": (
        "two-sided rank test of the trials (Mann and Whitney 1947; exact with ties by Streitberg "
        "and R\u00f6hmel 1986)"
    ),
    "intervals": (
        "two-sided normal test of the logarithms, of errors recovered from the intervals of both "
        "medians (MOVER, Zou and Donner 2008) and of the noise between runs"
    ),
    "sign-flip": (
        "joint test of all metrics by flipping the signs of blocks, in the direction seen "
        "(Westfall and Young 1993; scales by Smyth 2004)"
    ),
    BY_START: (
        "joint test of all metrics by flipping the signs of starts of the engines, each the mean "
        "of its blocks, in the direction seen (Westfall and Young 1993; scales by Smyth 2004)"
    ),
    "McNemar": (
        "exact test of the answers that only one side got right (McNemar 1947), in the direction "
        "seen"
    ),
    "none": "these values allow no test",
}
_EFFECTS: Final[Mapping[Design, str]] = {
    Design.EXACT: "difference of the worst trials",
    Design.PAIRED: "typical ratio of the blocks (Hodges and Lehmann 1963)",
}
_MEDIANS: Final = "ratio of the medians"
_SHARES: Final = "difference of the shares; interval by Tango's score statistic (1998)"
_SAMENESS: Final[Mapping[Design, str]] = {
    Design.PAIRED: "two one-sided signed-rank tests of the blocks (Schuirmann 1987; Wellek 2010)",
    Design.UNPAIRED: "two one-sided rank tests of the trials (Schuirmann 1987; Wellek 2010)",
    Design.INTERVALS: "two one-sided normal tests (Schuirmann 1987)",
}
_SAME_SHARES: Final = "two one-sided score tests (Schuirmann 1987; Tango 1998)"
_SENTENCES: Final = 6
"""As many comparisons of one verdict as get a sentence of their own."""
_CONTROL: Final = (
    "within blocks the joint test itself; else Benjamini-Hochberg 1995 over the family of tests, "
    "Holm 1979 for the gate"
)
_LISTED: Final = 20
"""More deviations than this are only counted; ``--json`` has them all."""
_SHOWN: Final = 60
"""How much of a deviating value is shown."""


def print_explanation(
    comparison: Comparison,
    report: Report,
    sides: tuple[OneSide, OneSide],
    parameters: Mapping[str, Any],
    console: Console,
) -> None:
    """Print how one comparison came to its verdict, with ``list_parameters`` of the replay."""
    verdict = comparison.verdict
    title = Text(one_line(name_of(comparison)), style="bold")
    title.append(f"  {sentence.MARKS[verdict]} {verdict.value}", style=STYLES[verdict])
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    subject = Subject(comparison.metric, comparison.statistic)
    blocks = build_pair(subject, *sides).blocks if comparison.design is Design.PAIRED else None
    metric = comparison.metric
    better = "lower" if metric.better is Direction.LOWER else "higher"
    what = f"{metric.doc} Per trial the {comparison.statistic}; {better} is better."
    rows = [
        ("metric", what),
        *_inputs(comparison, blocks),
        *_rule(comparison),
        *_parameters(comparison, report, parameters),
        *_results(comparison),
        ("so", because(comparison, report.false_discovery_rate)),
    ]
    if report.attribution is not None and report.attribution.metric == comparison.metric.id:
        rows.append(("why", sentence.reason(report.attribution)))
    for heading, shown in rows:
        grid.add_row(heading, Text(one_line(shown)))
    console.print(Group(title, Padding(grid, (0, 0, 1, 2))))


def print_reasons(report: Report, console: Console) -> None:
    """Print in a sentence each why the loud verdicts are what they are, and name the others."""
    for verdict in ORDER:
        alike = [c for c in report.comparisons if c.verdict is verdict]
        shown = alike[:_SENTENCES] if verdict in sentence.PROMINENT else []
        for comparison in shown:
            why = because(comparison, report.false_discovery_rate)
            _print_reason(verdict, f"{name_of(comparison)}: {why}", console)
        if rest := alike[len(shown) :]:
            names = ", ".join(map(name_of, rest))
            more = "more " if shown else ""
            _print_reason(verdict, f"{len(rest)} {more}{verdict.value}: {names}", console)
    console.print()


def _print_reason(verdict: Verdict, text: str, console: Console) -> None:
    line = Table.grid(padding=(0, 1))
    line.add_column(no_wrap=True)
    line.add_column(overflow="fold")
    line.add_row(Text(sentence.MARKS[verdict], style=STYLES[verdict]), Text(one_line(text)))
    console.print(line)


Row = tuple[str, str]


def _inputs(comparison: Comparison, blocks: Blocks | None) -> Iterator[Row]:
    if comparison.metric.kind is Kind.PROPORTION:
        yield from _questions(comparison)
        return
    unit = comparison.metric.unit.value
    for name, side in (("baseline", comparison.baseline), ("contender", comparison.contender)):
        if side is None:
            yield name, "no value"
        else:
            values = ", ".join(f"{value:.6g}" for value in side.values)
            kept = "worst" if comparison.metric.kind is Kind.EXACT else "median"
            trials = plural(side.n, "trial")
            yield name, f"{values} ({unit}; {kept} of {trials}: {side.center:.6g})"
    if blocks is not None:
        pairs = zip(blocks.baseline, blocks.contender, strict=True)
        changes = ", ".join(f"{100 * (right / left - 1):+.2f}" for left, right in pairs)
        yield "by block", f"{changes} % ({blocks.n} of {blocks.planned} blocks)"


def _questions(comparison: Comparison) -> Iterator[Row]:
    for name, side in (("baseline", comparison.baseline), ("contender", comparison.contender)):
        yield name, "no value" if side is None else f"{round(sum(side.values))} of {side.n} right"
    if comparison.test == "none":
        return
    lost = sum(flip.baseline.correct for flip in comparison.flips)
    won = len(comparison.flips) - lost
    yield "answers", f"{lost} right on the baseline only, {won} right on the contender only"


def _rule(comparison: Comparison) -> Iterator[Row]:
    yield "rule", f"{comparison.test}: {_RULES.get(comparison.test, 'see docs/judging.md')}"
    if comparison.assumption:
        yield "assumes", comparison.assumption
    shares = comparison.metric.kind is Kind.PROPORTION
    if comparison.effect is not None:
        repeated = comparison.design is Design.EXACT and comparison.metric.kind is not Kind.EXACT
        design = Design.UNPAIRED if repeated else comparison.design
        yield "effect", _SHARES if shares else _EFFECTS.get(design, _MEDIANS)
    if comparison.equivalence_p is not None:
        yield "sameness", _SAME_SHARES if shares else _SAMENESS[comparison.design]
    if comparison.p_value is not None:
        yield "control", _CONTROL


def _parameters(
    comparison: Comparison, report: Report, parameters: Mapping[str, Any]
) -> Iterator[Row]:
    if comparison.design is Design.EXACT:
        return
    shown = [
        f"band of sameness {numbers.size(comparison, find_band(comparison))}",
        f"bound of relevance {numbers.size(comparison, comparison.relevance)}",
    ]
    if comparison.noise is not None:
        assumed = {least_noise(comparison.metric), start_noise(comparison.metric)}
        known = "assumed" if comparison.noise in assumed else "learned"
        shown.append(f"{known} noise {numbers.size(comparison, comparison.noise)}")
    shown.append(f"level {report.false_discovery_rate:g}")
    if report.looks is not None:
        shown.append(
            f"p-values of timed trials make up for {len(report.looks.planned)} looks at "
            f"{level_of(report.looks):g} each"
        )
    if comparison.p_value is not None:
        counted = {family.name: family.tests for family in report.families}
        tests = plural(counted.get(comparison.family, report.tests), "test")
        shown.append(f"one of {tests} of {comparison.family} controlled together")
    found = comparison.interval
    if found is not None:
        how = f"interval of {100 * found.confidence:g} %"
        if comparison.design is Design.INTERVALS:
            how += " from the intervals of both medians"
        elif comparison.metric.kind.has_noise:
            drawn = parameters["bootstrap"][comparison.design.value]
            how += f" by at most {drawn['draws']} bootstrap draws, seed {drawn['seed']}"
        shown.append(how)
    yield "parameters", "; ".join(shown)


def _results(comparison: Comparison) -> Iterator[Row]:
    shown = []
    if comparison.effect is not None:
        shown.append(f"effect {describe_change(comparison)}")
    for name, p in (
        ("p", comparison.p_value),
        ("adjusted p", comparison.p_adjusted),
        ("Holm p", comparison.p_holm),
        ("equivalence p", comparison.equivalence_p),
    ):
        if p is not None:
            shown.append(f"{name} {p:.4g}")
    if comparison.churn is not None:
        shown.append(f"churn {numbers.size(comparison, comparison.churn)}")
    if comparison.minimum_detectable_effect is not None:
        seen = numbers.size(comparison, comparison.minimum_detectable_effect)
        shown.append(f"minimum detectable effect {seen}")
    if comparison.trials_needed is not None:
        shown.append(f"trials needed {comparison.trials_needed}")
    if shown:
        yield "numbers", "; ".join(shown)
    if comparison.verdict.is_measured:
        for doubt in comparison.doubts:
            yield "doubt", doubt


def print_replay(path: Path, replay: VerdictReplay, report: Report, console: Console) -> None:
    """Print what became of a stored verdict."""
    for line in replay.alterations:
        console.print(Text(one_line(line), style="red"))
    deviations = [_deviation_text(report, one) for one in replay.deviations]
    for line in sentence.with_rest(deviations, _LISTED):
        console.print(indented(line))
    if replay.changes:
        console.print(Text("Changed since it was stored:", style="bold"))
        for line in replay.changes:
            console.print(indented(line))
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


def _deviation_text(report: Report, deviation: Deviation) -> str:
    """Say what differs, with the metric's name in the place of its number."""
    texts = map(repr, (deviation.stored, deviation.again))
    stored, again = (text if len(text) <= _SHOWN else text[:_SHOWN] + "\u2026" for text in texts)
    path = deviation.path
    for at, comparison in enumerate(report.comparisons):
        if path.startswith(prefix := f"comparisons[{at}]"):
            name = f"{comparison.metric.id} {comparison.statistic}"
            path = name + path.removeprefix(prefix).replace(".", " ", 1)
            break
    return f"{path}: stored {stored}, again {again}"
