"""The two sides that words name: a record, one side of it, or what is pinned."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hybridwatch.analysis.policy import STRICT, Policy
from hybridwatch.errors import ComparisonError
from hybridwatch.history.judge import Chosen, Judged, both_sides, judge, machines_apart
from hybridwatch.records.run import Run
from hybridwatch.records.store import BASELINES, RecordReader, find_record, read_baselines

PINNED: Final = "pinned"
_MARK: Final = "#"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A record as named on the command line.

    Attributes:
        name: File, run id or ``latest``.
        side: Which build, ``None`` if none is given.
    """

    name: str
    side: int | None


@dataclass(frozen=True, slots=True)
class SideOptions:
    """How sides are found and compared.

    Attributes:
        pinned: Whether the baseline is the pinned one, whatever else the record holds.
        across_testbeds: Whether to compare what different machines measured, or to refuse to;
            ``None`` does neither and shows both sides.
        announce: Is given a line that says which baseline was pinned, and by whom.
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
) -> Judged:
    """Compare what the command line names.

    Args:
        records: One or two words, each RECORD or RECORD#SIDE.
        results: Folder in which run ids are looked up.
        policy: Whose margins take the place of the metrics' own.
        options: How to compare them.
        reader: Who reads the records, and may have read some before.

    Raises:
        ComparisonError: The words do not name two sides, or the same one twice, or sides of two
            testbeds without ``across_testbeds``.
        RecordError: A record cannot be found or read.
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
    across = bool(options.across_testbeds)
    return judge(left, right, results, policy, across_testbeds=across)


def _judged_alone(side: Chosen, results: Path, policy: Policy) -> Judged:
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
    paths = [find_record(results, one.name) for one in wanted]
    runs = [reader.whole(path) for path in paths]
    if len(runs) == 2:
        if options.pinned:
            raise ComparisonError("--baseline pinned: expected one record, found two")
        left, right = (
            Chosen(path, run, _side(run, one))
            for path, run, one in zip(paths, runs, wanted, strict=True)
        )
        return left, right
    if not options.pinned and wanted[0].side is None and len(runs[0].builds) == 2:
        return both_sides(paths[0], runs[0])
    # The last build of a run is what it was made for.
    side = len(runs[0].builds) - 1 if wanted[0].side is None else wanted[0].side
    contender = Chosen(paths[0], runs[0], side)
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
    """Refuse what different machines measured, and say how they differ.

    Raises:
        ComparisonError: The testbeds are not known to be one.
    """
    differing = machines_apart(baseline, contender)
    if not differing:
        return
    lines = "\n".join(f"  {line}" for line in differing)
    raise ComparisonError(
        f"refused: different machines measured the sides, so a difference may be theirs:\n{lines}\n"
        "measure both on one machine, or compare anyway with --across-testbeds"
    )


def _wanted(word: str) -> _Wanted:
    name, mark, side = word.rpartition(_MARK)
    if not mark:
        return _Wanted(word, None)
    if side not in {"0", "1"}:
        raise ComparisonError(f"{word}: expected 0 or 1 after {_MARK}, found {side!r}")
    return _Wanted(name, int(side))


def _side(run: Run, wanted: _Wanted) -> int:
    if wanted.side is not None:
        return wanted.side
    if len(run.builds) == 1:
        return 0
    labels = ", ".join(f"{_MARK}{at} is {build.label}" for at, build in enumerate(run.builds))
    raise ComparisonError(f"{wanted.name}: holds {len(run.builds)} builds; add the side: {labels}")
