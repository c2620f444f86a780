"""Which records are about the same: what the command line asks before it reads any."""

import json
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path

import pytest

from hybridwatch.database import heads
from hybridwatch.database.connection import DATABASE_FILE, DATABASE_VARIABLE
from hybridwatch.database.heads import paths_in_group, read_alike, read_newest
from hybridwatch.records.codec import decode_record
from hybridwatch.records.file_parts import read_head
from hybridwatch.records.store import StoreContents, list_records, write_run
from tests.store_builders import STARTED, Plan, as_version_1, read_all, run, scenario
from tests.unit.database.stores import add, opened

SMALL = Plan(documents=3, performance_trials=1)

pytestmark = pytest.mark.usefixtures("place")


def small(seed: int = 1, later_h: int = 0):
    return run(replace(SMALL, seed=seed, started_at=STARTED + timedelta(hours=later_h)))


def test_of_a_long_history_the_newest_alike_are_read(tmp_path: Path) -> None:
    runs = [small(later_h=hour) for hour in range(6)]
    for one in runs:
        write_run(tmp_path, one)
    labels = {runs[0].builds[0].label}
    near = read_alike(tmp_path, runs[5], labels, newest=3)
    assert [one.id for one in near] == [one.id for one in runs[2:5]]  # itself left out
    assert read_alike(tmp_path, runs[5], {"cuda-0.27.1"}, newest=3) == ()
    list_records(tmp_path)[3].write_bytes(b"{")
    assert [one.id for one in read_alike(tmp_path, runs[5], labels, newest=2)] == [
        runs[2].id,
        runs[4].id,
    ]


def of(name: str, later_h: int, seed: int = 1):
    """A run of a scenario."""
    return replace(small(seed, later_h), scenario=scenario(name))


def test_of_a_group_are_its_own_records_and_those_nobody_can_read(tmp_path: Path) -> None:
    later, first = (write_run(tmp_path, of("gpu/a", hour, seed=hour)) for hour in (5, 1))
    write_run(tmp_path, of("gpus/a", 2))
    write_run(tmp_path, of("smoke/gpu", 3, seed=3))
    damaged = write_run(tmp_path, of("smoke/b", 4, seed=4))
    damaged.write_bytes(b"{")
    found = paths_in_group(tmp_path, "gpu")
    assert [one for one in found if one != damaged] == [first, later]
    assert damaged in found


def test_of_every_scenario_the_newest_run_is_read_and_no_older_one(tmp_path, monkeypatch) -> None:
    for hour in range(6):
        write_run(tmp_path, of("smoke/a", hour))
        write_run(tmp_path, of("smoke/b", hour, seed=2))
    once = write_run(tmp_path, of("smoke/long-ago", -9))
    parsed: list[bytes] = []

    def watched(record: bytes):
        parsed.append(record)
        return decode_record(record)

    monkeypatch.setattr("hybridwatch.records.store.reader.decode_record", watched)
    shelf = read_newest(tmp_path)
    assert len(parsed) == 3
    newest = {stored.run.scenario.id: stored for stored in read_all(tmp_path, bulk=False).runs}
    assert {stored.run.scenario.id: stored for stored in shelf.runs} == newest
    assert shelf.runs[0].path == once
    assert shelf.broken == ()


def test_a_record_laid_out_by_others_or_of_another_version_is_read_too(tmp_path: Path) -> None:
    compact = as_version_1(write_run(tmp_path, of("smoke/a", 1)))
    older = of("smoke/a", -30)
    write_run(tmp_path, replace(older, scenario=replace(older.scenario, digest="e" * 64)))
    # A word that looks like the name of a scenario that has been seen hides nothing.
    named = json.dumps(asdict(older.scenario))
    hostile = replace(of("smoke/b", -1).scenario, fix=f'\n  "scenario": {named}')
    write_run(tmp_path, replace(small(later_h=-1), scenario=hostile))
    assert [stored.run.scenario.id for stored in read_newest(tmp_path).runs] == [
        "smoke/b",
        "smoke/a",
    ]
    assert read_newest(tmp_path).runs[1].path == compact


def test_a_definition_is_read_until_another_has_been_in_its_place_for_a_night(tmp_path) -> None:
    older = of("smoke/a", 0)
    before = write_run(tmp_path, replace(older, scenario=replace(older.scenario, digest="e" * 64)))
    after = write_run(tmp_path, of("smoke/a", 1))
    assert [stored.path for stored in read_newest(tmp_path).runs] == [before, after]
    last = write_run(tmp_path, of("smoke/a", 30))
    assert [stored.path for stored in read_newest(tmp_path).runs] == [last]


def test_the_newest_run_is_read_for_each_testbed_and_pair_of_builds(tmp_path: Path) -> None:
    here = of("smoke/a", 0)
    elsewhere = replace(of("smoke/a", 1, 2), testbed=replace(here.testbed, id="h100"))
    reverted = tuple(replace(build, label="cpu-0.28.0") for build in here.builds)
    other = replace(of("smoke/a", 2, 3), builds=(here.builds[0], reverted[1]))
    paths = [write_run(tmp_path, run) for run in (here, elsewhere, other)]
    assert [stored.path for stored in read_newest(tmp_path).runs] == paths


def test_of_a_series_of_nightly_builds_the_newest_is_read(tmp_path: Path) -> None:
    paths = []
    for night in (19, 20, 21):
        run = of("smoke/a", night, night)
        nightly = replace(run.builds[1], label=f"cpu-nightly-202611{night}")
        paths.append(write_run(tmp_path, replace(run, builds=(run.builds[0], nightly))))
    assert [stored.path for stored in read_newest(tmp_path).runs] == paths[-1:]


def test_a_run_of_one_build_with_itself_hides_no_comparison(tmp_path: Path) -> None:
    def of_nights(hour: int, *nights: int):
        run = of("smoke/a", hour, hour)
        builds = (replace(run.builds[0], label=f"nightly-202611{night}") for night in nights)
        return write_run(tmp_path, replace(run, builds=tuple(builds)))

    paths = [of_nights(1, 20, 21), of_nights(2, 21, 21)]
    assert [stored.path for stored in read_newest(tmp_path).runs] == paths


def test_a_broken_record_is_reported_unless_a_newer_one_of_its_scenario_is_whole(tmp_path) -> None:
    superseded, good, newest, nameless = (
        write_run(tmp_path, of(name, hour))
        for name, hour in (("smoke/a", 0), ("smoke/a", 1), ("smoke/b", 2), ("smoke/a", -1))
    )
    for path in (superseded, newest):
        path.write_bytes(path.read_bytes()[:-9])
    nameless.write_bytes(b"{")
    shelf = read_newest(tmp_path)
    assert [stored.path for stored in shelf.runs] == [good]
    assert [broken.path for broken in shelf.broken] == [nameless, newest]
    assert "cut short" in shelf.broken[1].reason
    assert read_newest(tmp_path / "none") == StoreContents((), ())


def test_a_head_is_read_once_and_judged_when_somebody_wants_verdicts(tmp_path, monkeypatch) -> None:
    write_run(tmp_path, small(1))
    judged = add(tmp_path, 1)
    seen: list[bytes] = []

    def watched(record: bytes):
        seen.append(record)
        return read_head(record)

    monkeypatch.setattr(heads, "read_head", watched)
    assert opened(tmp_path).read == 2
    read_newest(tmp_path)
    assert seen == [], "what is judged has a head"
    write_run(tmp_path, small(2, later_h=1))
    for _ in range(2):
        assert len(read_newest(tmp_path).runs) == 2
    assert len(seen) == 1
    assert opened(tmp_path).read == 1
    judged.unlink()
    assert len(read_newest(tmp_path).runs) == 1
    assert opened(tmp_path).index.counts["runs"] == 2


def test_who_has_no_right_to_write_reads_all_the_same(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv(DATABASE_VARIABLE, raising=False)
    (tmp_path / DATABASE_FILE).mkdir()
    path = write_run(tmp_path, small(1))
    assert [stored.path for stored in read_newest(tmp_path).runs] == [path]
