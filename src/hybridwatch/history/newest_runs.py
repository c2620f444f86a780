"""Judging a folder: the newest record for each question, and those that are not there."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from hybridwatch.analysis import doubt
from hybridwatch.analysis.cause import causes_in
from hybridwatch.analysis.change_review import Absent, ChangeReview
from hybridwatch.analysis.freshness import (
    REMEMBERED,
    Gap,
    LastMeasured,
    age_text,
    gaps,
    what_counts,
)
from hybridwatch.analysis.growth import Growth, find_growth
from hybridwatch.analysis.policy import Policy
from hybridwatch.analysis.verdict import Comparison, Report, Verdict
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.errors import ComparisonError, RecordError
from hybridwatch.history.judge import PLAIN, SideOptions, judge_named, known_bad_in
from hybridwatch.records.identity import Role, compares_releases, is_release, name_line, name_role
from hybridwatch.records.run import Run
from hybridwatch.records.store import Baseline, RecordReader, Stored, read_baselines, read_examples
from hybridwatch.records.store.layout import require_folder
from hybridwatch.records.store.verdicts import find_profile, read_profile
from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home_or_shipped

_ONLY_EXAMPLES: Final = Absent(
    "examples", "nothing was measured here yet; only the records that hybridwatch comes with count"
)


def findings_for(
    records: tuple[str, ...],
    results: Path,
    policy: Policy,
    options: SideOptions = PLAIN,
    now: datetime | None = None,
) -> ChangeReview:
    """Judge the records that are named, as for ``judge_named``, or a whole folder.

    What the policy expects, and how old it may be, counts only when no record is named. Ages count
    back from ``now``, which has a time zone and is by itself the present. In a folder a record that
    cannot be read is absent; a named one raises ``RecordError``.
    """
    now = datetime.now(UTC) if now is None else now
    if records:
        one = judge_named(records, results, policy, options)
        untimed = [_absent(one.contender.run, "")] if one.is_alone else []
        unpaired = tuple(_unpaired(untimed))
        return _findings([one.report], policy, now, results, left_out=unpaired)
    require_folder(results)
    from hybridwatch.database.heads import read_newest  # a named record needs no database

    reader = RecordReader()
    found = read_newest(results, reader)
    broken = [
        Absent(broken.path.name, f"cannot be read: {broken.reason}") for broken in found.broken
    ]
    pins = read_baselines(results)
    everything, examples = _without_baselines(found.runs, pins), read_examples(results)
    own = [stored for stored in everything if stored.run.id not in examples]
    # Until something is measured the examples are judged; none of them is ever overdue.
    runs = own or everything
    oldest = now - timedelta(days=policy.max_age_days)
    fresh = [one for one in runs if not own or one.run.started_at >= oldest]
    reports, absent, alone = _judged(fresh, reader, results, policy, options)
    judged = {(report.scenario.id, report.contender.testbed.id) for report in reports}
    reports, of_releases = _watched(_against_luck(reports, results), policy)
    # What a scenario expects of one build was judged; a run of times alone is all there is,
    # unless another run of its scenario and testbed was judged.
    looks = [one for one in alone if (one.scenario, one.testbed) in judged]
    absent += [one for one in alone if one not in looks]
    left_out = [*_unpaired(looks), *of_releases, *_no_longer_watched(runs, fresh, policy, now)]
    if own or not runs:
        absent += [_of_gap(gap) for gap in _gaps(runs, pins, policy, now)]
    else:
        left_out.append(_ONLY_EXAMPLES)
    return _findings(reports, policy, now, results, (*broken, *absent), left_out)


def read_grown(results: Path, reports: Sequence[Report]) -> dict[str, tuple[Growth, ...]]:
    """Give what takes more of the engine's time, by the contender's run, where it was sampled."""
    found = {}
    for side in (report.contender for report in reports):
        with suppress(RecordError):  # its page says so: a profile decides nothing
            sides = read_profile(find_profile(results, side.testbed.id, side.run_id))
            if sides is not None:
                found[side.run_id] = find_growth(*sides)
    return found


def _against_luck(reports: Sequence[Report], results: Path) -> list[Report]:
    if all(c.verdict is not Verdict.REGRESSION for one in reports for c in one.comparisons):
        return list(reports)
    from hybridwatch.database.queries import open_index
    from hybridwatch.history.alerts import reds_within_luck

    lucky = reds_within_luck(open_index(results))

    def marked(report: Report, one: Comparison) -> Comparison:
        red = (report.contender.run_id, one.metric.id, one.statistic)
        return replace(doubt.added(one, doubt.OF_LUCK), of_luck=True) if red in lucky else one

    return [
        replace(one, comparisons=tuple(marked(one, c) for c in one.comparisons)) for one in reports
    ]


def _judged(
    fresh: Sequence[Stored],
    reader: RecordReader,
    results: Path,
    policy: Policy,
    options: SideOptions,
) -> tuple[list[Report], list[Absent], list[Absent]]:
    """Judge records; gives the reports, what could not be judged, and what has no baseline."""
    reports: list[Report] = []
    absent: list[Absent] = []
    alone: list[Absent] = []
    for stored in sorted(fresh, key=lambda stored: _place(stored.run)):
        run = stored.run
        try:
            judged = judge_named((str(stored.path),), results, policy, options, reader)
            reports.append(judged.report)
            if judged.is_alone:
                alone.append(_absent(run, "no baseline"))
        except ComparisonError as error:
            if len(run.builds) == 2:
                absent.append(_absent(run, str(error)))
            else:
                alone.append(_absent(run, f"no baseline: {error}"))
        except RecordError as error:
            absent.append(_absent(run, f"cannot be read: {error}"))
    return reports, absent, alone


def _findings(
    reports: Sequence[Report],
    policy: Policy,
    now: datetime,
    results: Path,
    absent: Sequence[Absent] = (),
    left_out: Sequence[Absent] = (),
) -> ChangeReview:
    """Put known-bad controls apart: they are red on purpose."""
    controls = [known_bad_in(report) for report in reports]
    return ChangeReview(
        reports=tuple(one for one, found in zip(reports, controls, strict=True) if found is None),
        absent=tuple(absent),
        policy=policy,
        controls=tuple(found for found in controls if found is not None),
        left_out=tuple(left_out),
        now=now,
        grown=read_grown(results, reports),
    )


def _without_baselines(runs: Sequence[Stored], pins: Sequence[Baseline]) -> list[Stored]:

    def is_pinned(run: Run) -> bool:
        return len(run.builds) == 1 and any(
            (pin.scenario, pin.testbed) == _place(run) and run.id.startswith(pin.run)
            for pin in pins
        )

    others = {_place(stored.run) for stored in runs if not is_pinned(stored.run)}
    return [one for one in runs if _place(one.run) not in others or not is_pinned(one.run)]


def _is_control(run: Run) -> bool:
    """Whether a run proves that the suite sees: it makes up for no comparison that went silent."""
    role = _role(run)
    return role is not None and role.is_on_purpose


def _role(run: Run) -> Role | None:
    return name_role(*run.builds, known_bad=run.known_bad) if len(run.builds) == 2 else None


def _gaps(
    runs: Sequence[Stored], pins: Sequence[Baseline], policy: Policy, now: datetime
) -> tuple[Gap, ...]:
    pinned = {(pin.scenario, pin.testbed) for pin in pins}
    others = [stored.run for stored in runs if not _is_control(stored.run)]
    controls = [stored.run for stored in runs if _is_control(stored.run)]
    compared = any(len(run.builds) == 2 or _place(run) in pinned for run in others)
    measured = what_counts(map(_measured, others), map(_measured, controls), compared=compared)
    expected = find(home_or_shipped() / "scenarios", policy.expected) if policy.expected else []
    return gaps(measured, policy, now, [scenario.id for scenario in expected])


def _unpaired(looks: Sequence[Absent]) -> Iterator[Absent]:
    """Say once for each scenario and testbed of which runs times and rates were not judged."""
    by_place: defaultdict[str, list[Absent]] = defaultdict(list)
    for one in looks:
        by_place[one.place].append(one)
    for alike in by_place.values():
        ids = ", ".join(one.run_id for one in alike)
        what = "run of one build, so its" if len(alike) == 1 else "runs of one build, so their"
        reason = f"no baseline for {what} times are not judged: {ids}"
        yield replace(alike[-1], reason=reason)


def _measured(run: Run) -> LastMeasured:
    return LastMeasured(*_place(run), run.started_at, run.id)


def _of_gap(gap: Gap) -> Absent:
    last = (gap.last.started_at, gap.last.run_id) if gap.last else (None, "")
    return Absent(gap.scenario, gap.reason, gap.testbed, *last)


def _watched(reports: Sequence[Report], policy: Policy) -> tuple[list[Report], tuple[Absent, ...]]:
    """Put comparisons of two releases apart; the second value is a line on what is bad in them."""
    watched: list[Report] = []
    apart: defaultdict[tuple[str, str], list[Report]] = defaultdict(list)
    for report in reports:
        pair = name_line(report.baseline.build), name_line(report.contender.build)
        (apart[pair] if compares_releases(*pair) else watched).append(report)
    if all(is_release(name_line(report.contender.build)) for report in watched):
        return list(reports), ()
    lines = [line for pair, found in apart.items() if (line := _of_releases(*pair, found, policy))]
    return watched, (Absent("releases", "; ".join(lines)),) if lines else ()


def _of_releases(old: str, new: str, reports: Sequence[Report], policy: Policy) -> str:
    bad = {
        report.contender.run_id: len(causes)
        for report in reports
        if (causes := [cause for cause in causes_in(report, policy) if not cause.is_better])
    }
    if not bad:
        return ""
    counted = plural(sum(bad.values()), "regression")
    worst = max(bad, key=bad.__getitem__)
    of = f"the worst of {len(bad)} runs: " if len(bad) > 1 else ""
    return f"{new} against {old}: {counted}, see {of}hybridwatch gate {worst}"


def _no_longer_watched(
    runs: Sequence[Stored], fresh: Sequence[Stored], policy: Policy, now: datetime
) -> Iterator[Absent]:
    """Old comparisons whose build none of those that go on watches, a line a pair of builds."""
    places = {_place(stored.run) for stored in fresh}
    watched = {(*_place(stored.run), name_line(stored.run.builds[-1])) for stored in fresh}
    by_pair: defaultdict[tuple[str, ...], list[Run]] = defaultdict(list)
    for stored in runs:
        run = stored.run
        if (
            _place(run) in places
            and (*_place(run), name_line(run.builds[-1])) not in watched
            and now - run.started_at <= REMEMBERED
            and policy.expects(run.scenario.id)
            and _role(run) is Role.COMPARISON
            and not compares_releases(*map(name_line, run.builds))
        ):
            by_pair[tuple(map(name_line, run.builds))].append(run)
    for found in by_pair.values():
        run = max(found, key=lambda run: run.started_at)
        old, new = (build.label for build in run.builds)
        since = f"since {run.started_at.date()} ({age_text(now - run.started_at)}): {run.id}"
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        yield _absent(run, f"{new} against {old} was not measured {since}{more}")


def _absent(run: Run, reason: str) -> Absent:
    return Absent(run.scenario.id, reason, run.testbed.id, run.started_at, run.id)


def _place(run: Run) -> tuple[str, str]:
    return run.scenario.id, run.testbed.id
