"""A folder is judged per scenario, testbed and pair of builds, and old records are missing."""

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hybridwatch.analysis.gate import LUCK
from hybridwatch.analysis.policy import Policy
from hybridwatch.history.newest_runs import findings_for
from hybridwatch.records.run import Run
from hybridwatch.records.store import list_records, read_file, reader, write_run
from tests.builders import BASELINE, TESTBED, a_build, a_run
from tests.planted_world.plan import CHAT, NOTHING, SHORTEST, A, morning, plan_nothing
from tests.planted_world.records import write_world
from tests.planted_world.replay import cut_off

NOW = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)
ROWS = "contract.padded_rows_prefilling"
GOOD, BAD = {ROWS: (0.0,)}, {ROWS: (4.0,)}
NIGHTLY = a_build("cpu-nightly-20261121", release="0.33.0")
HERE = TESTBED.id


@pytest.fixture
def store(tmp_path):
    """Store a run that is some days old."""

    def stored(days: float, *sides, at=HERE, new=NIGHTLY, **changes) -> Run:
        run = a_run(*(sides or (GOOD, GOOD)))
        builds = (BASELINE, new)[-len(run.builds) :]
        started = changes.pop("now", NOW) - timedelta(days=days)
        run = replace(
            run,
            id=f"{len(list(tmp_path.rglob('*.json'))):08x}",
            started_at=started,
            testbed=replace(TESTBED, id=at),
            builds=builds,
            **changes,
        )
        write_run(tmp_path, run)
        return run

    return stored


@pytest.fixture
def judge(tmp_path):
    def judged(policy: Policy = Policy()):  # noqa: B008 (frozen)
        return findings_for((), tmp_path, policy, now=NOW)

    return judged


def test_a_testbed_that_fails_is_not_hidden_by_one_that_passes_later(store, judge) -> None:
    store(0.5, GOOD, BAD, at="h100")
    store(0.2, GOOD, GOOD, at="epyc")
    found = judge()
    assert [report.contender.testbed.id for report in found.reports] == ["epyc", "h100"]
    assert found.gate.reasons == (f"smoke/padded-graph-rows on h100: {ROWS} value: regression",)


def test_a_red_that_starts_explain_warns_once_the_nights_have_shown_how_much_they_differ(
    tmp_path,
) -> None:
    whole, young, known = (tmp_path / name for name in ("whole", "young", "known"))
    write_world(whole, plan_nothing(1, SHORTEST, NOTHING["start-modes"], (CHAT,), (A,)))
    gates = [
        findings_for((), cut_off(whole, night, folder), Policy(), now=morning(night)).gate
        for night, folder in ((4, young), (20, known))
    ]
    assert [one.passed for one in gates] == [False, True]
    assert gates[1].warnings
    assert all(line.endswith(f"regression, but {LUCK}") for line in gates[1].warnings)


def test_a_pair_of_builds_that_fails_is_not_hidden_by_another(store, judge) -> None:
    store(0.5, GOOD, BAD, new=a_build("cpu-0.28.0"))
    store(0.2, new=a_build("cpu-0.29.0"))
    (reason,) = judge().gate.reasons
    assert reason.startswith("smoke/padded-graph-rows (cpu-0.28.0 against cpu-0.27.1): ")


def test_of_a_series_of_nightly_builds_only_the_newest_counts(store, judge) -> None:
    store(1.2, GOOD, BAD, new=a_build("cpu-nightly-20261120"))
    store(0.2, GOOD, GOOD, new=a_build("cpu-nightly-20261121"))
    found = judge()
    assert (len(found.reports), found.gate.passed) == (1, True)


def test_an_old_record_is_missing_and_never_green(store, judge) -> None:
    run = store(4)
    found = judge()
    assert found.reports == ()
    assert found.gate.reasons == (
        f"smoke/padded-graph-rows on {HERE}: not measured since 2026-11-18 (4 days): {run.id}",
    )


def test_a_policy_may_allow_older_records(store, judge) -> None:
    store(4)
    assert judge(Policy(max_age_days=7)).gate.passed


def test_a_testbed_that_went_silent_stops_though_another_measures(store, judge) -> None:
    store(4, at="h100")
    store(0.2, at="epyc")
    found = judge(Policy(expected=("smoke/padded-graph-rows",)))
    (reason,) = found.gate.reasons
    assert reason.startswith("smoke/padded-graph-rows on h100: not measured since 2026-11-18")
    only = Policy(expected=("smoke/padded-graph-rows",), testbeds=("epyc",))
    assert judge(only).gate.passed


def test_what_the_policy_does_not_expect_may_grow_old_in_silence(store, judge) -> None:
    store(4, scenario=replace(a_run(GOOD).scenario, id="reported/one"))
    store(0.2)
    assert judge(Policy(expected=("smoke/padded-graph-rows",))).gate.passed


def test_a_build_that_is_no_longer_measured_next_to_others_is_a_warning(store, judge) -> None:
    old = store(4, new=a_build("pr-12"))
    store(0.2)
    result = judge().gate
    assert result.passed
    place, _, said = result.warnings[0].partition(": ")
    assert place == f"smoke/padded-graph-rows on {HERE}"
    since = f"since 2026-11-18 (4 days): {old.id}"
    assert said == f"pr-12 against cpu-0.27.1 was not measured {since}"


def test_a_control_makes_up_for_no_comparison_that_went_silent(store, judge) -> None:
    store(4)
    store(0.2, new=a_build("cpu-0.27.1+slow-step"))
    assert any("not measured since 2026-11-18" in line for line in judge().gate.reasons)


def test_a_pinned_baseline_is_not_judged_next_to_what_is_compared_with_it(
    store, judge, tmp_path
) -> None:
    baseline = store(1.5, GOOD, new=BASELINE)
    store(0.2, GOOD)
    (tmp_path / "baselines.toml").write_text(
        f'[[baseline]]\nscenario = "{baseline.scenario.id}"\ntestbed = "{HERE}"\n'
        f'run = "{baseline.id}"\ndate = 2026-11-21\nreason = "a start"\n'
    )
    found = judge()
    assert (len(found.reports), found.gate.passed, found.absent) == (1, True, ())


def test_each_record_of_a_folder_is_read_once(store, judge, tmp_path, monkeypatch) -> None:
    store(0.5)
    store(0.2, at="epyc")
    reads = Counter[str]()

    def counting(path: Path, most: int) -> bytes:
        if path.suffix == ".json":
            reads[path.name] += 1
        return read_file(path, most)

    monkeypatch.setattr(reader, "read_file", counting)
    assert len(judge().reports) == 2
    assert reads == {path.name: 1 for path in list_records(tmp_path)}


def test_the_age_of_each_record_is_reported(store, call, own_policy) -> None:
    present = datetime.now(UTC)
    run = store(1.5, now=present)
    policy = own_policy()
    text = call("gate", *policy).output
    assert f"judged smoke/padded-graph-rows: 36 hours old, run {run.id}" in text
    told = json.loads(call("gate", *policy, "--json").stdout)
    (report,) = told["reports"]
    assert report["age_hours"] == pytest.approx(36, abs=0.1)
    assert report["contender"]["started_at"] == f"{run.started_at:%Y-%m-%dT%H:%M:%SZ}"
    one = json.loads(call("gate", run.id, *policy, "--json").stdout)
    assert one["age_hours"] == pytest.approx(36, abs=0.1)


def test_a_run_of_one_build_warns_that_its_times_are_not_judged(store, judge) -> None:
    look = store(0.5, GOOD, new=a_build("cpu-0.29.0"))
    assert judge().gate.passed
    store(0.2)
    result = judge().gate
    assert (result.passed, len(result.warnings)) == (True, 1)
    assert result.warnings[0].endswith(f"its times are not judged: {look.id}")


def note_examples(folder: Path, *runs: Run) -> None:
    (folder / "examples.txt").write_text("".join(f"{run.id}\n" for run in runs))


def test_examples_are_judged_whatever_their_age_until_something_is_measured(
    store, judge, tmp_path
) -> None:
    example = store(400)
    assert not judge().gate.passed
    note_examples(tmp_path, example)
    found = judge()
    assert ([one.contender.run_id for one in found.reports], found.gate.passed) == (
        [example.id],
        True,
    )
    (warning,) = found.gate.warnings
    assert warning.startswith("examples: nothing was measured here yet")


def test_bad_news_of_an_example_stays_bad_news(store, judge, tmp_path) -> None:
    note_examples(tmp_path, store(400, GOOD, BAD))
    assert not judge().gate.passed


def test_next_to_what_was_measured_no_example_is_judged_expected_or_overdue(
    store, judge, tmp_path
) -> None:
    note_examples(tmp_path, store(20, GOOD, BAD, at="somebody-elses"))
    mine = store(0.2)
    found = judge(Policy(expected=("smoke/padded-graph-rows",)))
    assert [one.contender.run_id for one in found.reports] == [mine.id]
    assert (found.gate.passed, found.gate.warnings) == (True, ())


def test_what_was_measured_grows_old_next_to_examples(store, judge, tmp_path) -> None:
    note_examples(tmp_path, store(400))
    mine = store(4)
    (reason,) = judge().gate.reasons
    assert reason.endswith(f"not measured since 2026-11-18 (4 days): {mine.id}")
