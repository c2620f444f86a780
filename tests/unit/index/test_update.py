import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from hybridwatch.analysis.report import report_of
from hybridwatch.index import open_index, reading, rules, segments, update
from hybridwatch.index.segments import INDEX
from hybridwatch.index.tables import ROWS_VERSION
from hybridwatch.report.sentence import headline
from tests.unit.index.stores import add, opened
from tests.unit.index.stores import segments as on_disk

ROOT = Path(__file__).parents[3]
HOUR = 3600
ANSWERS = ("runs", "verdicts", "latest_verdicts", "broken", "cells")


def instead(segment: Path) -> Path:
    shutil.rmtree(segment)
    return segment


def same(one, other) -> bool:
    return all(getattr(one, ask)().equals(getattr(other, ask)()) for ask in ANSWERS)


def test_store_that_does_not_exist_is_empty_and_stays_away(tmp_path):
    found = opened(tmp_path / "none")
    assert set(found.index.counts.values()) == {0}
    assert not (tmp_path / "none").exists()


def test_empty_store_answers_every_question(tmp_path):
    index = opened(tmp_path).index
    assert all(getattr(index, ask)().empty for ask in ANSWERS)
    assert index.sparklines(5).empty
    series = index.series("smoke/x", 1, "epyc", "ttft", "median")
    assert series.points.empty
    assert series.levels.empty
    assert index.is_current()


def test_only_new_records_are_read(tmp_path):
    add(tmp_path, 1)
    assert opened(tmp_path).said == [(0, 1), (1, 1)]
    add(tmp_path, 2)
    add(tmp_path, 3)
    assert opened(tmp_path).said == [(0, 2), (1, 2), (2, 2)]
    found = opened(tmp_path)
    assert found.said == [(0, 0)]
    assert found.runs == {"00000001", "00000002", "00000003"}
    assert same(found.index, opened(tmp_path, rebuild=True).index)


def test_index_knows_when_the_store_has_grown(tmp_path):
    add(tmp_path, 1)
    index = opened(tmp_path).index
    assert index.is_current()
    add(tmp_path, 2)
    assert not index.is_current()
    assert opened(tmp_path).index.is_current()


def test_record_that_vanished_is_forgotten(tmp_path):
    gone = add(tmp_path, 1)
    add(tmp_path, 2)
    opened(tmp_path)
    gone.unlink()
    found = opened(tmp_path)
    assert found.runs == {"00000002"}
    assert found.read == 0
    assert found.index.counts["values"] == opened(tmp_path, rebuild=True).index.counts["values"]


def test_store_emptied_leaves_no_segment(tmp_path):
    path = add(tmp_path, 1)
    opened(tmp_path)
    path.unlink()
    assert opened(tmp_path).index.runs().empty
    assert on_disk(tmp_path) == []


def test_broken_record_is_named_and_read_again_once_repaired(tmp_path):
    path = add(tmp_path, 1)
    add(tmp_path, 2)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    found = opened(tmp_path)
    broken = found.index.broken()
    assert broken["record"].tolist() == [path.relative_to(tmp_path).as_posix()]
    assert "cut short" in broken["reason"].iloc[0]
    assert found.runs == {"00000002"}
    assert opened(tmp_path).read == 0, "a broken record is not read again and again"
    path.write_bytes(whole)
    repaired = opened(tmp_path)
    assert repaired.index.broken().empty
    assert repaired.read == 1
    assert repaired.runs == {"00000001", "00000002"}


def test_answers_that_come_back_make_a_record_whole(tmp_path):
    path = add(tmp_path, 1)
    bulk = next(path.parent.glob("*.bulk.jsonl.gz"))
    aside = bulk.rename(tmp_path / "aside")
    assert "No such file" in opened(tmp_path).index.broken()["reason"].iloc[0]
    aside.rename(bulk)
    assert opened(tmp_path).index.broken().empty


def test_file_name_that_is_no_unicode_is_broken_not_a_traceback(tmp_path):
    folder = add(tmp_path, 1).parent
    strange = os.fsencode(folder) + b"/2026\xff.json"
    with open(strange, "wb") as file:  # noqa: PTH123 (a path of bytes)
        file.write(b"{}")
    broken = opened(tmp_path).index.broken()
    assert broken["record"].iloc[0].endswith("2026\\udcff.json")
    assert opened(tmp_path).read == 0


def test_killed_between_batches_loses_a_batch_at_most(tmp_path):
    for number in range(7):
        add(tmp_path, number)
    killed = _python(
        tmp_path,
        """
        def say(done, total):
            if done == 6:
                os.kill(os.getpid(), 9)

        update.BATCH = 2
        open_index(results, headline, say)
        """,
    )
    assert killed.wait() == -signal.SIGKILL
    found = opened(tmp_path)
    assert found.read == 3
    assert len(found.runs) == 7


def test_killed_before_a_segment_has_its_name_leaves_nothing_to_be_read(tmp_path):
    add(tmp_path, 1)
    killed = _python(
        tmp_path,
        """
        Path.rename = lambda *_: os.kill(os.getpid(), 9)
        open_index(results, headline)
        """,
    )
    assert killed.wait() == -signal.SIGKILL
    (half,) = (tmp_path / INDEX).glob("*/.half-*")
    assert (half / "values.parquet").exists(), "killed too early to tell anything"
    assert on_disk(tmp_path) == []
    assert opened(tmp_path).read == 1
    assert half.exists(), "its writer may still live"
    os.utime(half, (time.time() - 2 * HOUR,) * 2)
    assert opened(tmp_path).read == 0
    assert not half.exists()


def test_killed_before_old_segments_are_gone_counts_nothing_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(update, "_MANY", 1)
    add(tmp_path, 1)
    opened(tmp_path)
    add(tmp_path, 2)
    with monkeypatch.context() as killed:
        killed.setattr(update, "remove", lambda _: None)
        before = opened(tmp_path).index
    assert len(on_disk(tmp_path)) == 3
    found = opened(tmp_path)
    assert found.read == 0
    assert same(found.index, before)
    assert len(on_disk(tmp_path)) == 1


def test_many_segments_become_one_with_the_same_answers(tmp_path, monkeypatch):
    monkeypatch.setattr(update, "_MANY", 3)
    for number in range(8):
        add(tmp_path, number)
        assert opened(tmp_path).read == 1
        assert len(on_disk(tmp_path)) <= 3
    assert same(opened(tmp_path).index, opened(tmp_path, rebuild=True).index)


def test_two_processes_at_once_index_everything_once(tmp_path):
    for number in range(12):
        add(tmp_path, number)
    # Each goes on only when the other has begun, so that both read every record.
    names = [str(tmp_path / name) for name in ("first", "second")]
    both = [
        _python(
            tmp_path,
            f"""
            def say(done, total):
                assert total == 12
                Path({mine!r}).touch()
                while not Path({other!r}).exists():
                    time.sleep(0.01)

            update.BATCH = update._MANY = 2
            index = open_index(results, headline, say)
            assert len(index.runs()) == 24, index.counts
            assert index.kept
            """,
        )
        for mine, other in (names, names[::-1])
    ]
    assert [process.wait() for process in both] == [0, 0]
    found = opened(tmp_path)
    assert found.read == 0
    assert len(found.index.runs()) == 24
    assert same(found.index, opened(tmp_path, rebuild=True).index)


@pytest.mark.parametrize(
    "damage",
    [
        lambda segment: (segment / "values.parquet").write_bytes(b"PAR1 and no more"),
        lambda segment: (segment / "runs.parquet").unlink(),
        lambda segment: (segment / "records.parquet").write_bytes(b""),
        lambda segment: parquet.write_table(pa.table({"other": [1]}), segment / "verdicts.parquet"),
        lambda segment: segment.rename(segment.with_name("no-number")),
        lambda segment: instead(segment).write_text("a file"),
        lambda segment: instead(segment).symlink_to("nowhere"),
    ],
)
def test_damaged_or_foreign_segment_is_thrown_away_and_its_records_read(tmp_path, damage):
    add(tmp_path, 1)
    before = opened(tmp_path).index
    (segment,) = on_disk(tmp_path)
    damage(segment)
    found = opened(tmp_path)
    assert found.read == 1
    assert same(found.index, before)
    assert opened(tmp_path).read == 0


def test_no_flipped_bit_becomes_a_number(tmp_path):
    add(tmp_path, 1)
    opened(tmp_path)
    (segment,) = on_disk(tmp_path)
    path = segment / "values.parquet"
    whole, before = path.read_bytes(), segments.read_segment(segment).tables["values"]
    noticed = 0
    for at in random.Random(7).sample(range(len(whole)), 200):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        try:
            assert segments.read_segment(segment).tables["values"].equals(before), at
        except segments.DamagedError:
            noticed += 1
    assert noticed > 50, "what is left lies where no value does"


def test_other_rules_judge_again_and_leave_the_first_index_alone(tmp_path, monkeypatch):
    add(tmp_path, 1)
    opened(tmp_path)
    with monkeypatch.context() as other:
        other.setattr(update, "rules_digest", lambda _: "others")
        assert opened(tmp_path).read == 1
    assert opened(tmp_path).read == 0


def test_rules_are_others_with_other_tools_rows_or_words(monkeypatch):
    digest = rules.rules_digest.__wrapped__
    before = digest(headline)
    assert digest(headline) == before
    assert digest(_loud) != before
    with monkeypatch.context() as changed:
        changed.setattr(rules, "present_tools", lambda: {"rules": "another"})
        assert digest(headline) != before
    with monkeypatch.context() as changed:
        changed.setattr(rules, "ROWS_VERSION", ROWS_VERSION + 1)
        assert digest(headline) != before


def test_other_words_are_another_index(tmp_path):
    add(tmp_path, 1)
    opened(tmp_path)
    index = open_index(tmp_path, _loud)
    assert set(index.runs()["headline"]) == {"LOUD"}
    assert "LOUD" not in set(opened(tmp_path).index.runs()["headline"])


def test_index_that_nobody_opens_is_cleared_away_after_a_week(tmp_path, monkeypatch):
    add(tmp_path, 1)
    opened(tmp_path)
    (home,) = (tmp_path / INDEX).glob("[!.]*")
    monkeypatch.setattr(update, "rules_digest", lambda _: "others")
    os.utime(home, (time.time() - 6 * 24 * HOUR,) * 2)
    opened(tmp_path)
    assert home.exists()
    os.utime(home, (time.time() - 8 * 24 * HOUR,) * 2)
    opened(tmp_path)
    assert not home.exists()


def test_folder_that_cannot_be_made_is_no_obstacle(tmp_path):
    add(tmp_path, 1)
    (tmp_path / INDEX).write_text("in the way")
    found = opened(tmp_path)
    assert not found.index.kept
    assert found.runs == {"00000001"}
    assert (tmp_path / INDEX).read_text() == "in the way"


def test_full_disk_is_no_obstacle(tmp_path, monkeypatch):
    add(tmp_path, 1)

    def full(*_args, **_named):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(parquet, "write_table", full)
        found = opened(tmp_path)
        assert not found.index.kept
        assert found.runs == {"00000001"}
        assert list((tmp_path / INDEX).glob("*/*")) == []
    assert opened(tmp_path).index.kept


def test_index_is_nothing_that_git_would_keep(tmp_path):
    add(tmp_path, 1)
    opened(tmp_path)
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    seen = subprocess.run(
        ["git", "status", "--short", "--untracked-files=all"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "records/" in seen
    assert INDEX not in seen


def test_record_is_judged_once_for_all_readers(tmp_path, monkeypatch):
    add(tmp_path, 1)
    judged = []

    def judge(run):
        judged.append(run.id)
        return report_of(run)

    monkeypatch.setattr(reading, "report_of", judge)
    opened(tmp_path)
    opened(tmp_path).index.latest_verdicts()
    assert judged == ["00000001"]


def _loud(_report) -> str:
    return "LOUD"


def _python(results: Path, body: str) -> subprocess.Popen[bytes]:
    """Another process that opens the same store."""
    head = f"""
        import os
        import time
        from pathlib import Path
        from hybridwatch.index import open_index, update
        from hybridwatch.report.sentence import headline
        results = Path({str(results)!r})
        """
    code = textwrap.dedent(head) + textwrap.dedent(body)
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
