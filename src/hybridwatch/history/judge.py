"""Finds and judges two sides, and stores verdicts; every verb and view that compares uses it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hybridwatch.analysis.detection import (
    NOTHING,
    DetectionPromise,
    KnownBad,
    find_known_bad,
    find_promise,
    is_control,
)
from hybridwatch.analysis.difference import differences_between
from hybridwatch.analysis.policy import STRICT, Policy
from hybridwatch.analysis.replay import (
    VerdictReplay,
    changes_between,
    deviations_between,
    list_parameters,
    noise_in,
    present_tools,
)
from hybridwatch.analysis.report import Terms, report_between
from hybridwatch.analysis.run_noise import REMEMBERED, Noise, noise_between
from hybridwatch.analysis.subject import OneSide, list_sides
from hybridwatch.analysis.verdict import Report
from hybridwatch.analysis.wording.report_json import to_json
from hybridwatch.errors import ComparisonError, HybridwatchError
from hybridwatch.records.run import UNKNOWN, Run
from hybridwatch.records.store import (
    BASELINES,
    RecordReader,
    StoredVerdict,
    find_record,
    find_results,
    read_baselines,
    read_side,
    read_verdict,
    refer,
    write_verdict,
)
from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home_or_shipped

PINNED: Final = "pinned"
_MARK: Final = "#"


@dataclass(frozen=True, slots=True)
class Chosen:
    """One side, and the record it was read from."""

    record: Path
    run: Run
    side: int

    @property
    def one_side(self) -> OneSide:
        """The side as the analysis wants it."""
        return OneSide(self.run, self.side)


@dataclass(frozen=True, slots=True)
class JudgedReport:
    """A report, and what it was made from and hangs on; no noise between the sides of one run."""

    baseline: Chosen
    contender: Chosen
    terms: Terms
    report: Report

    @property
    def is_alone(self) -> bool:
        """Whether there is but one side, held against what its scenario expects."""
        return self.baseline is self.contender

    @property
    def parameters(self) -> dict[str, Any]:
        """Every number besides the records that the report hangs on."""
        return list_parameters(
            self.report.false_discovery_rate,
            self.terms.noise,
            across_testbeds=self.terms.across_testbeds,
        )


def both_sides(record: Path, run: Run) -> tuple[Chosen, Chosen]:
    """Give the two sides of an interleaved run; ``ComparisonError`` if it has one build only."""
    baseline, contender = list_sides(run)
    return Chosen(record, run, baseline.index), Chosen(record, run, contender.index)


def judge(
    baseline: Chosen,
    contender: Chosen,
    results: Path,
    policy: Policy = STRICT,
    *,
    across_testbeds: bool = False,
) -> JudgedReport:
    """Compare two sides as every verb does; other runs in ``results`` say how much series vary."""
    noise = _learned(baseline, contender, results)
    terms = Terms(noise=noise, policy=policy, across_testbeds=across_testbeds)
    return judge_on(terms, baseline, contender)


def judge_on(terms: Terms, baseline: Chosen, contender: Chosen) -> JudgedReport:
    """Compare two sides, the noise between runs being known."""
    report = report_between(baseline.one_side, contender.one_side, terms)
    return JudgedReport(baseline, contender, terms, report)


def _learned(baseline: Chosen, contender: Chosen, results: Path) -> Noise:
    if baseline.run.id == contender.run.id:
        return {}  # the sides of one run share its start, its memory layout and its day
    # The sides of one run need no database, whose import takes longer than their verdict.
    from hybridwatch.database.heads import read_alike

    labels = {baseline.one_side.build.label, contender.one_side.build.label}
    history = [
        OneSide(run, side)
        for run in read_alike(results, contender.run, labels, REMEMBERED)
        for side in range(len(run.builds))
    ]
    return noise_between(history, baseline.one_side, contender.one_side)


def known_bad_in(report: Report) -> KnownBad | None:
    """Say what a report showed as a known-bad control; ``None`` for one that is none."""
    return find_known_bad(report, _promised(report.scenario.id)) if is_control(report) else None


def _promised(scenario_id: str) -> DetectionPromise:
    try:
        found = find(home_or_shipped() / "scenarios", (scenario_id,))
    except HybridwatchError:
        return NOTHING  # a record from elsewhere may be of a scenario that is not here
    return next((find_promise(one) for one in found if one.id == scenario_id), NOTHING)


def save(results: Path, judged: JudgedReport) -> Path:
    """Store a verdict with all it takes to have it again; gives its path."""
    baseline, contender = (
        refer(results, chosen.record, chosen.run.id, chosen.side)
        for chosen in (judged.baseline, judged.contender)
    )
    verdict = StoredVerdict(
        baseline=baseline,
        contender=contender,
        parameters=judged.parameters,
        tools=present_tools(),
        report=to_json(judged.report),
    )
    return write_verdict(results, verdict, judged.contender.run)


def replay(path: Path, results: Path) -> tuple[JudgedReport, VerdictReplay]:
    """Judge a stored verdict's records, below ``results`` or around it, again, and compare."""
    verdict, untouched = read_verdict(path)
    folder = find_results(path, results)
    alterations = [] if untouched else [f"{path} was altered after it was written."]
    sides = [read_side(folder, reference) for reference in (verdict.baseline, verdict.contender)]
    alterations += [
        f"{side.record} was altered after it was judged; records never change: restore it."
        for side in sides
        if not side.as_judged
    ]
    baseline, contender = (Chosen(side.record, side.run, side.index) for side in sides)
    terms = Terms(
        noise=noise_in(verdict.parameters),
        across_testbeds=bool(verdict.parameters.get("across_testbeds")),
    )
    judged = judge_on(terms, baseline, contender)
    stored = {**verdict.report, "parameters": verdict.parameters}
    again = {**to_json(judged.report), "parameters": judged.parameters}
    return judged, VerdictReplay(
        deviations=deviations_between(stored, again),
        alterations=tuple(dict.fromkeys(alterations)),
        changes=changes_between(verdict.tools, present_tools()),
    )


def machines_apart(baseline: Chosen, contender: Chosen) -> tuple[str, ...]:
    """Say in what the machines of two sides differ, a line each; nothing when they are one."""
    left, right = baseline.run.testbed, contender.run.testbed
    if left.id != right.id:
        lines = differences_between(baseline.one_side, contender.one_side)
        return tuple(line for line in lines if line.startswith("testbed "))
    if left.id == UNKNOWN and baseline.run.id != contender.run.id:
        return ("neither side says where it was measured: ingest with --testbed",)
    return ()


@dataclass(frozen=True, slots=True)
class SideOptions:
    """How sides are found and compared; ``announce`` is given a line on what was pinned, by whom.

    With ``pinned`` the baseline is the pinned one, not the other side of the record. What different
    machines measured is compared or refused by ``across_testbeds``; ``None`` does neither and shows
    both.
    """

    pinned: bool = False
    across_testbeds: bool | None = None
    announce: Callable[[str], None] = lambda _: None


PLAIN: Final = SideOptions()


def judge_named(
    records: tuple[str, ...],
    results: Path,
    policy: Policy = STRICT,
    options: SideOptions = PLAIN,
    reader: RecordReader | None = None,
) -> JudgedReport:
    """Compare what the command line names: one or two words, each RECORD or RECORD#SIDE.

    A ``ComparisonError`` says that they do not name two sides, that both are one, or that they are
    of two testbeds without ``across_testbeds``; a ``RecordError``, that a record cannot be read.
    """
    left, right = _sides(records, results, options, reader or RecordReader())
    if left is None:
        return _judged_alone(right, results, policy)
    if (left.run.id, left.side) == (right.run.id, right.side):
        raise ComparisonError(
            f"run {left.run.id}{_MARK}{left.side}: would be compared with itself; "
            "measure another run to compare with it"
        )
    if options.across_testbeds is False:
        _refuse_across(left, right)
    return judge(left, right, results, policy, across_testbeds=bool(options.across_testbeds))


def _judged_alone(side: Chosen, results: Path, policy: Policy) -> JudgedReport:
    try:
        return judge(side, side, results, policy)
    except ComparisonError as error:
        raise ComparisonError(
            f"{error}; {_unpinned(side.run, results)}: name a second record, or pin one "
            "(results/README.md)"
        ) from error


def _sides(
    records: tuple[str, ...], results: Path, options: SideOptions, reader: RecordReader
) -> tuple[Chosen | None, Chosen]:
    """Give both sides; no baseline where one side is named and nothing is pinned for it."""
    if len(records) > 2:
        raise ComparisonError(f"expected one record or two, found {len(records)}")
    wanted = [_wanted(word) for word in records]
    paths = [find_record(results, name) for name, _ in wanted]
    runs = [reader.whole(path) for path in paths]
    if len(runs) == 2:
        if options.pinned:
            raise ComparisonError("--baseline pinned: expected one record, found two")
        left, right = (
            Chosen(path, run, _side(run, *one))
            for path, run, one in zip(paths, runs, wanted, strict=True)
        )
        return left, right
    ((_, side),) = wanted
    if not options.pinned and side is None and len(runs[0].builds) == 2:
        return both_sides(paths[0], runs[0])
    # The last build of a run is what it was made for.
    contender = Chosen(paths[0], runs[0], len(runs[0].builds) - 1 if side is None else side)
    return _pinned_for(contender, results, options, reader), contender


def _pinned_for(
    contender: Chosen, results: Path, options: SideOptions, reader: RecordReader
) -> Chosen | None:
    run = contender.run
    for pin in read_baselines(results):
        if (pin.scenario, pin.testbed) == (run.scenario.id, run.testbed.id):
            path = find_record(results, pin.run)
            found = reader.whole(path)
            if (found.scenario.id, found.testbed.id) != (pin.scenario, pin.testbed):
                raise ComparisonError(
                    f"{results / BASELINES}: run {pin.run} is of {found.scenario.id} on "
                    f"{found.testbed.id}, expected {pin.scenario} on {pin.testbed}"
                )
            by = f" by {pin.who}" if pin.who else ""
            options.announce(
                f"baseline: run {found.id}#{pin.side}, pinned {pin.date}{by}: {pin.reason}"
            )
            return Chosen(path, found, pin.side)
    if options.pinned:
        missing = _unpinned(run, results)
        raise ComparisonError(f"--baseline pinned: {missing}: pin one (results/README.md)")
    return None


def _unpinned(run: Run, results: Path) -> str:
    elsewhere = [pin.testbed for pin in read_baselines(results) if pin.scenario == run.scenario.id]
    where = f" (pinned on {', '.join(elsewhere)})" if elsewhere else ""
    pins = results / BASELINES
    return f"{pins} pins no baseline for {run.scenario.id} on {run.testbed.id}{where}"


def _refuse_across(baseline: Chosen, contender: Chosen) -> None:
    if differing := machines_apart(baseline, contender):
        lines = "\n".join(f"  {line}" for line in differing)
        raise ComparisonError(
            "refused: different machines measured the sides, so a difference may be theirs:\n"
            f"{lines}\nmeasure both on one machine, or compare anyway with --across-testbeds"
        )


def _wanted(word: str) -> tuple[str, int | None]:
    """Read what names a record (file, run id or ``latest``), and which build of it, if one is."""
    name, mark, side = word.rpartition(_MARK)
    if not mark:
        return word, None
    if side not in {"0", "1"}:
        raise ComparisonError(f"{word}: expected 0 or 1 after {_MARK}, found {side!r}")
    return name, int(side)


def _side(run: Run, name: str, side: int | None) -> int:
    if side is not None:
        return side
    if len(run.builds) == 1:
        return 0
    labels = ", ".join(f"{_MARK}{at} is {build.label}" for at, build in enumerate(run.builds))
    raise ComparisonError(f"{name}: holds {len(run.builds)} builds; add the side: {labels}")
