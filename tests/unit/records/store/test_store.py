import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from hybridwatch.errors import RecordError
from hybridwatch.records.codec import encode
from hybridwatch.records.file_parts import name_bulk, safe_name
from hybridwatch.records.store import (
    check_writable,
    find_record,
    list_records,
    read_run,
    take_in,
    write_run,
)
from hybridwatch.records.store.files import write_all
from tests.store_builders import STARTED, TESTBED, Plan, read_all, run

ROOT = Path(__file__).parents[4]
SMALL = Plan(documents=3, performance_trials=1)


def small(seed: int = 1, later_h: int = 0):
    return run(replace(SMALL, seed=seed, started_at=STARTED + timedelta(hours=later_h)))


def files_of(results: Path) -> list[str]:
    return sorted(path.name for path in results.rglob("*") if path.is_file())


def test_written_run_is_read_back(tmp_path: Path) -> None:
    original = small()
    path = write_run(tmp_path, original)
    assert read_run(path) == original
    assert path.parent == tmp_path / "records" / "epyc-9654-2c-linux"
    assert re.fullmatch(r"20261121T091500Z-cpu-0\.27\.1-[0-9a-f]{8}\.json", path.name)
    assert files_of(tmp_path) == [path.stem + ".bulk.jsonl.gz", path.name]


def test_reading_without_bulk_leaves_the_answers_out(tmp_path: Path) -> None:
    alone = read_run(write_run(tmp_path, small()), bulk=False)
    assert not any(trial.answers for trial in alone.trials)


def test_a_batch_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    write_run(tmp_path, small(later_h=1))
    before = files_of(tmp_path)
    batch = [(one, encode(one)) for one in (small(), small(later_h=1), small(later_h=2))]
    with pytest.raises(RecordError, match="is there already"):
        write_all(tmp_path, batch)
    assert files_of(tmp_path) == before


def test_record_never_changes(tmp_path: Path) -> None:
    path = write_run(tmp_path, small())
    before = path.read_bytes()
    changed = replace(small(), trials=())
    with pytest.raises(RecordError, match="is there already; records never change"):
        write_run(tmp_path, changed)
    assert path.read_bytes() == before
    assert read_run(path) == small()


def test_file_system_without_links_keeps_the_promises(tmp_path, monkeypatch) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    path = write_run(tmp_path, small())
    assert read_run(path) == small()
    with pytest.raises(RecordError, match="is there already"):
        write_run(tmp_path, small())
    assert len(files_of(tmp_path)) == 2


@pytest.mark.parametrize("failing_call", [1, 2, 3, 4])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_failure_at_any_flush_leaves_nothing(tmp_path, monkeypatch, failing_call, error) -> None:
    write_run(tmp_path, small(seed=2))
    before = files_of(tmp_path)
    calls = 0

    def fsync(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == failing_call + 1:  # the first is the folder's
            raise error

    monkeypatch.setattr("os.fsync", fsync)
    expected = RecordError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        write_run(tmp_path, small())
    assert files_of(tmp_path) == before


def test_unwritable_folder_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "records").write_text("a file where the folder should be")
    for attempt in (lambda: write_run(tmp_path, small()), lambda: check_writable(tmp_path)):
        with pytest.raises(RecordError, match=r"records.*: cannot be made: ") as e:
            attempt()
        assert "\n" not in str(e.value)


def test_full_disk_is_reported_before_the_run(tmp_path, monkeypatch) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RecordError, match="cannot be written: No space left on device"):
        check_writable(tmp_path)


def test_check_leaves_nothing_behind(tmp_path: Path) -> None:
    check_writable(tmp_path / "new")
    assert files_of(tmp_path) == []


def test_records_are_listed_oldest_first_over_all_testbeds(tmp_path: Path) -> None:
    other = replace(TESTBED, id="another-machine")
    newest = write_run(tmp_path, small(1, later_h=5))
    oldest = write_run(tmp_path, replace(small(2), testbed=other))
    middle = write_run(tmp_path, small(3, later_h=1))
    (oldest.parent / ".half-0.tmp").write_bytes(b"{")
    (oldest.parent / ".hidden.json").write_bytes(b"{")
    assert list_records(tmp_path) == [oldest, middle, newest]
    assert list_records(tmp_path / "nowhere") == []


def test_record_is_found_by_path_id_prefix_and_latest(tmp_path: Path) -> None:
    first, second = small(1), small(2, later_h=1)
    first_path, second_path = write_run(tmp_path, first), write_run(tmp_path, second)
    assert find_record(tmp_path, str(first_path)) == first_path
    assert find_record(tmp_path, first.id) == first_path
    assert find_record(tmp_path, second.id[:6]) == second_path
    assert find_record(tmp_path, "latest") == second_path


@pytest.mark.parametrize("key", ["", "zzzz", "latest", "gone.json", "a/b"])
def test_unknown_key_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(RecordError):
        find_record(tmp_path, key)


def test_ambiguous_prefix_is_refused_with_the_candidates(tmp_path: Path) -> None:
    for last in "12":
        write_run(tmp_path, replace(small(), id="abcdef0" + last))
    with pytest.raises(RecordError, match=r"fits 2 records: .*abcdef01, .*abcdef02; give more"):
        find_record(tmp_path, "abcdef")


def test_reading_all_names_broken_records_and_keeps_the_rest(tmp_path: Path) -> None:
    good = write_run(tmp_path, small(1))
    cut = write_run(tmp_path, small(2, later_h=1))
    cut.write_bytes(cut.read_bytes()[:500])
    lost = write_run(tmp_path, small(3, later_h=2))
    lost.with_name(lost.stem + ".bulk.jsonl.gz").unlink()
    shelf = read_all(tmp_path)
    assert [stored.path for stored in shelf.runs] == [good]
    assert [broken.path for broken in shelf.broken] == [cut, lost]
    assert "cut short" in shelf.broken[0].reason
    assert "No such file" in shelf.broken[1].reason
    assert [stored.path for stored in read_all(tmp_path, bulk=False).runs] == [good, lost]


@pytest.mark.parametrize("name", ["../../etc", "/etc/passwd", "..", "", "a b/c\nd", "x" * 500])
def test_names_from_outside_stay_in_their_folder(tmp_path: Path, name: str) -> None:
    builds = tuple(replace(build, label=name) for build in small().builds)
    path = write_run(tmp_path, replace(small(), testbed=replace(TESTBED, id=name), builds=builds))
    assert path.resolve().is_relative_to((tmp_path / "records").resolve())
    assert path.parent.parent == tmp_path / "records"
    assert list_records(tmp_path) == [path]


def test_labels_with_switched_fixes_stay_readable() -> None:
    assert safe_name("cpu-0.27.1~padded-rows+x_y") == "cpu-0.27.1~padded-rows+x_y"


WRITER = """
import sys, itertools
from pathlib import Path
from dataclasses import asdict, replace
from hybridwatch.records.store import write_run
from hybridwatch.system import files as atomic_file
from tests.store_builders import Plan, run
from tests.waiting import strike_at

results, stop_after, last_step = Path(sys.argv[1]), *map(int, sys.argv[2:])
give_name, given = atomic_file._give_name, 0

def counting(temporary, path):
    global given
    give_name(temporary, path)
    given += 1
    if given == stop_after:
        print("between", flush=True)
        sys.stdin.read()

atomic_file._give_name = counting
made = run(Plan(documents=40, performance_trials=2))
print("ready", flush=True)
if last_step:
    strike_at(last_step)
for number in itertools.count():
    write_run(results, replace(made, id=f"{number:08x}"))
"""


def writer(results: Path, stop_after: int = -1, last_step: int = 0) -> subprocess.Popen[str]:
    """A process that writes runs without end.

    Or it stands still after so many files, or kills itself after so many steps.
    """
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(results), str(stop_after), str(last_step)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_killed_between_bulk_and_record_shows_no_half_run(tmp_path: Path) -> None:
    process = writer(tmp_path, stop_after=5)  # two whole runs, and the bulk of a third
    try:
        assert [read_line(process), read_line(process)] == ["ready", "between"]
    finally:
        kill(process)
    assert sum(name.endswith(".gz") for name in files_of(tmp_path)) == 3
    assert len(list_records(tmp_path)) == 2
    shelf = read_all(tmp_path)
    assert (len(shelf.runs), shelf.broken) == (2, ())
    again = replace(run(Plan(documents=40, performance_trials=2)), id="00000002")
    write_run(tmp_path, again)  # the third
    shelf = read_all(tmp_path)
    assert (len(shelf.runs), shelf.broken) == (3, ())


def test_a_run_whose_answers_were_left_alone_is_taken_in_again(tmp_path: Path) -> None:
    encoded = encode(small())
    assert take_in(tmp_path, small(), encoded)
    (record,) = list_records(tmp_path)
    record.unlink()
    name_bulk(record).write_bytes(b"of another record")
    assert take_in(tmp_path, small(), encoded)
    assert not take_in(tmp_path, small(), encoded)
    assert read_run(record) == small()


def test_one_run_sent_many_times_at_once_is_there_once_and_whole(tmp_path: Path) -> None:
    encoded = encode(small())
    with ThreadPoolExecutor(8) as senders:
        new = list(senders.map(lambda _: take_in(tmp_path, small(), encoded), range(16)))
    assert new.count(True) == 1
    shelf = read_all(tmp_path)
    assert (len(shelf.runs), shelf.broken) == (1, ())


EVERY_LINE = """
import os, signal, sys
from pathlib import Path
from hybridwatch.records.store import files, write_run
from hybridwatch.system import files as atomic_file
from tests.store_builders import Plan, run

made = run(Plan(documents=3, performance_trials=1))

def write_and_die(results, last_line):
    lines = 0

    def trace(frame, event, argument):
        nonlocal lines
        if frame.f_code.co_filename not in {files.__file__, atomic_file.__file__}:
            return None
        if event == "line":
            lines += 1
            if lines == last_line:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)
    write_run(results, made)
    os._exit(0)

for last_line in range(1, 1000):
    child = os.fork()
    if child == 0:
        write_and_die(Path(sys.argv[1]) / f"{last_line:03d}", last_line)
    if os.waitpid(child, 0)[1] == 0:
        break
"""


def test_killed_at_any_line_shows_a_whole_run_or_none(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", EVERY_LINE, str(tmp_path)],
        cwd=ROOT,
        check=True,
    )
    seen = []
    for results in sorted(tmp_path.iterdir()):
        shelf = read_all(results)
        assert shelf.broken == (), results
        seen.append(len(shelf.runs))
    # The record is the last thing to appear, and once it is there it stays.
    assert set(seen) == {0, 1}
    assert seen == sorted(seen)
    assert len(seen) > 30


# A run takes about 26,800 steps, and is on disk at the end of them.
@pytest.mark.parametrize("last_step", [26_500, 40_000, 53_500, 80_300])
def test_killed_in_the_midst_of_many_shows_only_whole_runs(tmp_path: Path, last_step: int) -> None:
    process = writer(tmp_path, last_step=last_step)
    assert process.communicate()[0] == "ready\n"
    assert process.returncode == -signal.SIGKILL
    shelf = read_all(tmp_path)
    assert shelf.broken == ()
    assert len(shelf.runs) == len(list_records(tmp_path))
