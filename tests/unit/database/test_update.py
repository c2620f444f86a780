import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from hybridwatch.analysis.report import build_report
from hybridwatch.database import queries, reading, writing
from hybridwatch.database.moment import HISTORY
from hybridwatch.database.schema import ROWS_VERSION
from hybridwatch.errors import DatabaseError
from tests.unit.database.stores import add, opened

pytestmark = pytest.mark.usefixtures("place")

ROOT = Path(__file__).parents[3]
LARGE = (pytest.mark.slow, pytest.mark.timeout(3600))
"""As many as a team may have: minutes, and nothing is asked that fewer do not ask."""
ANSWERS = ("runs", "verdicts", "latest_verdicts", "turns", "outcomes", "broken", "cells")


def answers_of(index) -> dict[str, str]:
    """Everything that an index says, as of now: it must not be asked again after a change."""
    frames = {ask: getattr(index, ask)() for ask in ANSWERS}
    frames["points"] = pd.concat(
        [index.series(*cell).points for cell in frames["cells"][list(HISTORY)].to_numpy().tolist()]
        or [pd.DataFrame()]
    )
    return {ask: frame.to_csv() for ask, frame in frames.items()}


def rebuilt(results: Path) -> dict[str, str]:
    return answers_of(opened(results, rebuild=True).index)


def test_store_that_does_not_exist_is_empty_and_stays_away(tmp_path):
    found = opened(tmp_path / "none")
    assert set(found.index.counts.values()) == {0}
    assert not (tmp_path / "none").exists()


def test_empty_store_answers_every_question(tmp_path):
    index = opened(tmp_path).index
    assert all(getattr(index, ask)().empty for ask in ANSWERS)
    assert index.sparklines(5).empty
    series = index.series("smoke/x", "epyc", "ttft", "median")
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
    assert answers_of(found.index) == rebuilt(tmp_path)


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

        queries.BATCH = 2
        open_index(results, say)
        """,
    )
    assert killed.wait() == -signal.SIGKILL
    found = opened(tmp_path)
    assert found.read == 3
    assert len(found.runs) == 7


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
                wait_until(Path({other!r}).exists, "the other one")

            queries.BATCH = 2
            index = open_index(results, say)
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
    assert answers_of(found.index) == rebuilt(tmp_path)


def test_record_is_judged_once_for_all_readers(tmp_path, monkeypatch):
    add(tmp_path, 1)
    judged = []

    def judge(run):
        judged.append(run.id)
        return build_report(run)

    monkeypatch.setattr(reading, "build_report", judge)
    opened(tmp_path)
    opened(tmp_path).index.latest_verdicts()
    assert judged == ["00000001"]


def test_who_opened_before_sees_one_moment(tmp_path):
    add(tmp_path, 1)
    index = opened(tmp_path).index
    before = answers_of(index)
    add(tmp_path, 2, slower=2.0)
    opened(tmp_path)
    assert answers_of(index) == before
    assert index.counts["runs"] == 1


@pytest.fixture
def several(monkeypatch):
    """Two processes read, from two records on."""
    monkeypatch.setattr(writing, "_WORTH_IT", 2)
    monkeypatch.setattr(writing, "_HANDED_AT_ONCE", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


def test_records_judged_by_several_processes_give_the_same(tmp_path, several, monkeypatch):
    for number in range(6):
        add(tmp_path, number)
    with monkeypatch.context() as one:
        one.setattr(os, "cpu_count", lambda: 1)
        alone = rebuilt(tmp_path)
    # As the script of a dashboard's page, which runs in the server's process and cannot run alone.
    page = ModuleType("__main__")
    page.__file__ = str(tmp_path / "page.py")
    (tmp_path / "page.py").write_text("raise SystemExit(not_here)")
    monkeypatch.setitem(sys.modules, "__main__", page)
    together = opened(tmp_path, rebuild=True)
    assert together.said == [(done, 6) for done in range(7)]
    assert answers_of(together.index) == alone


def test_what_a_process_that_was_killed_had_to_read_is_read_all_the_same(
    tmp_path, several, monkeypatch
):
    for number in range(4):
        add(tmp_path, number)
    read = writing._Worker.read

    def killed(worker, part):
        worker._process.kill()
        return read(worker, part)

    monkeypatch.setattr(writing._Worker, "read", killed)
    assert opened(tmp_path).index.counts["runs"] == 4


def test_other_rules_judge_again_and_say_so_to_who_has_the_old_ones(tmp_path, monkeypatch):
    add(tmp_path, 1)
    old = opened(tmp_path).index
    with monkeypatch.context() as other:
        other.setattr(queries, "rules_digest", lambda: "others")
        assert opened(tmp_path).read == 1
        assert opened(tmp_path).read == 0
        assert not old.is_current()
        with pytest.raises(DatabaseError, match="another version of hybridwatch"):
            old.runs()
    assert opened(tmp_path).read == 1


def test_rules_are_others_with_other_tools_or_rows(monkeypatch):
    digest = reading.rules_digest.__wrapped__
    before = digest()
    assert digest() == before
    with monkeypatch.context() as changed:
        changed.setattr(reading, "present_tools", lambda: {"rules": "another"})
        assert digest() != before
    with monkeypatch.context() as changed:
        changed.setattr(reading, "ROWS_VERSION", ROWS_VERSION + 1)
        assert digest() != before


@pytest.mark.parametrize("each", [6, pytest.param(200, marks=LARGE)])
def test_eight_processes_write_while_two_read(tmp_path, each):
    writers = [
        _python(
            tmp_path,
            f"""
            from tests.unit.database.stores import add
            for number in range({first}, {first + each}):
                add(results, number)
                assert open_index(results).kept
            """,
        )
        for first in range(0, 8 * each, each)
    ]
    readers = [
        _python(
            tmp_path,
            f"""
            seen = 0
            while seen < {8 * each}:
                index = open_index(results)
                runs = index.runs()
                assert len(runs) == 2 * index.counts["runs"]
                assert len(index.verdicts()) == index.counts["verdicts"]
                assert index.counts["runs"] >= seen
                seen = index.counts["runs"]
            """,
        )
        for _ in range(2)
    ]
    assert [process.wait() for process in (*writers, *readers)] == [0] * 10
    found = opened(tmp_path)
    assert found.read == 0
    assert answers_of(found.index) == rebuilt(tmp_path)


@pytest.mark.parametrize("times", [6, pytest.param(100, marks=LARGE)])
def test_killed_at_any_moment_loses_nothing_and_leaves_nothing_half(tmp_path, times):
    for number in range(8):
        add(tmp_path, number)
    whole = rebuilt(tmp_path)
    steps = steps_of_a_rebuild(tmp_path)
    for number in range(times):
        # All over a rebuild, and in the beginning of the next one.
        last_step = 1 + steps * 5 * number // (4 * times)
        killed = _python(
            tmp_path,
            f"""
            queries.BATCH = 2
            strike_at({last_step})
            while True:
                open_index(results, rebuild=True)
            """,
        )
        assert killed.wait() == -signal.SIGKILL
        found = opened(tmp_path)
        assert found.index.kept
        assert answers_of(found.index) == whole


def steps_of_a_rebuild(results: Path) -> int:
    counting = _python(
        results,
        """
        queries.BATCH = 2
        with counted() as steps:
            open_index(results, rebuild=True)
        print(*steps)
        """,
        stdout=subprocess.PIPE,
    )
    return int(counting.communicate()[0])


def _python(results: Path, body: str, stdout: int | None = None) -> subprocess.Popen[bytes]:
    """Another process that opens the same store."""
    head = f"""
        import os
        from pathlib import Path
        from hybridwatch.database import queries
        from hybridwatch.database.queries import open_index
        from tests.waiting import counted, strike_at
        from tests.waiting import wait_until
        results = Path({str(results)!r})
        """
    code = textwrap.dedent(head) + textwrap.dedent(body)
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=stdout)
