"""Each stage of a campaign within its limit, each answer on disk before the next stage begins."""

import json
import signal
import subprocess
import sys
import time

import pytest

from hybridwatch.errors import CampaignError
from hybridwatch.records.store import write_run
from hybridwatch.records.store.files import read_entries
from hybridwatch.system.guarded import GuardedProcess
from hybridwatch_lab.gpu.campaign import runner
from hybridwatch_lab.gpu.campaign.runner import (
    JOURNAL,
    End,
    StageEntry,
    alone,
    describe,
    run_campaign,
)
from tests.builders import a_run
from tests.unit.campaign.plans import a_campaign, a_stage
from tests.waiting import wait_until


def run(campaign, *, resume=False, clock=time.monotonic):
    lines: list[str] = []
    ends = run_campaign(campaign, lines.append, resume=resume, clock=clock)
    return {one.stage: one for one in ends}, lines


def test_stages_that_fail_hang_or_die_do_not_keep_the_next_from_its_answer(tmp_path, monkeypatch):
    answer = tmp_path / "campaign" / "hangs.out"

    class Patient(GuardedProcess):
        """Has its limit behind it as soon as the stage that hangs has found something."""

        def wait(self, timeout_s):
            if timeout_s == 6.0:
                wait_until(lambda: answer.stat().st_size, "a word of the stage that hangs")
                timeout_s = 0.0
            return super().wait(timeout_s)

    monkeypatch.setattr(runner, "GuardedProcess", Patient)
    ends, lines = run(
        a_campaign(
            tmp_path,
            a_stage("fails", "import sys; sys.exit('hybridwatch: no driver')"),
            a_stage("hangs", "import time; print(1, flush=True); time.sleep(600)", limit_s=6.0),
            a_stage("dies", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"),
            a_stage("answers", "print('{}')"),
            a_stage("bad-news", "import sys; print('{}'); sys.exit(1)"),
        )
    )
    assert [one.end for one in ends.values()] == [
        End.FAILED,
        End.TIMED_OUT,
        End.FAILED,
        End.ANSWERED,
        End.BAD_NEWS,
    ]
    assert ends["fails"].reason == "exit status 1: no driver"
    assert "no driver" in ends["fails"].tail
    assert ends["hangs"].reason == "still running at its limit of 6 s"
    assert ends["hangs"].left == ("hangs.out",), "what it had found until then"
    assert ends["answers"].left == ("answers.out",)
    assert [line.partition(":")[0] for line in lines] == [
        f"[{number}/5] {name}" for number, name in enumerate(ends, 1)
    ]


def test_stage_without_a_message_of_ours_is_explained_by_the_last_line_of_its_log(tmp_path):
    stage = a_stage("dies", "raise SystemExit('No module named so')")
    ends, _ = run(a_campaign(tmp_path, stage))
    assert ends["dies"].reason == "exit status 1: No module named so"


def test_stage_that_measures_answers_by_its_records(tmp_path):
    store = "import shutil, sys; shutil.copytree({!r}, {!r}, dirs_exist_ok=True)"
    (made := tmp_path / "made").mkdir()
    write_run(made, a_run({"output_throughput": [1.0]}))
    code = store.format(str(made), str(tmp_path / "results"))
    silent = a_stage("silent", "print('nothing was measured')", measures=True)
    ends, _ = run(a_campaign(tmp_path, a_stage("stores", code, measures=True), silent))
    assert ends["stores"].end is End.ANSWERED
    assert len(ends["stores"].left) == 1
    assert (tmp_path / "results" / ends["stores"].left[0]).is_file()
    assert ends["silent"].end is End.FAILED, "it ended well, and left no record"


def test_stage_that_does_not_fit_the_rest_of_the_time_is_not_begun(tmp_path):
    long = a_stage("long", "print(1)", limit_s=100.0)
    short = a_stage("short", "print(1)", limit_s=20.0)
    ends, lines = run(a_campaign(tmp_path, long, short, seconds=60.0), clock=lambda: 0.0)
    assert ends["long"].end is End.NOT_BEGUN
    assert describe(ends["long"]) == "long: not begun, it may take 100 s and 40 s were left"
    assert ends["short"].end is End.ANSWERED
    assert lines[0].startswith("[1/2] long: not begun")


def test_resume_runs_what_has_not_answered_and_nothing_else(tmp_path):
    counts = tmp_path / "counts"
    code = f"open({str(counts)!r}, 'a').write('x'); print(1)"
    broken = a_stage("broken", f"{code}; import sys; sys.exit(3)")
    ends, _ = run(a_campaign(tmp_path, a_stage("once", code), broken))
    assert [one.end for one in ends.values()] == [End.ANSWERED, End.FAILED]
    ends, _ = run(a_campaign(tmp_path, a_stage("once", code), broken), resume=True)
    assert [one.end for one in ends.values()] == [End.ANSWERED, End.FAILED]
    assert counts.read_text() == "xxx", "once, and twice what failed"


def test_resume_begins_with_what_was_never_tried(tmp_path):
    stages = [a_stage("fails", "raise SystemExit(3)"), a_stage("new", "print(1)")]
    run(a_campaign(tmp_path, stages[0]))
    ends, lines = run(a_campaign(tmp_path, *stages), resume=True)
    assert [line.partition(":")[0] for line in lines] == ["[1/2] new", "[2/2] fails"]
    assert list(ends) == ["fails", "new"], "told in the order of the plan"


def test_without_resume_everything_runs_again(tmp_path):
    counts = tmp_path / "counts"
    stage = a_stage("stage", f"open({str(counts)!r}, 'a').write('x'); print(1)")
    for _ in range(2):
        run(a_campaign(tmp_path, stage))
    assert counts.read_text() == "xx"


def test_cut_line_of_the_journal_is_no_answer_and_spoils_none(tmp_path):
    campaign = a_campaign(tmp_path, a_stage("one", "print(1)"), a_stage("two", "print(1)"))
    run(campaign)
    path = campaign.folder / JOURNAL
    path.write_bytes(path.read_bytes()[:-30])
    assert [one.stage for one in read_entries(path, StageEntry)] == ["one"]
    run(campaign, resume=True)
    assert [one.stage for one in read_entries(path, StageEntry)] == ["one", "two"]


_KILLED = """
import sys
from pathlib import Path
from tests.waiting import strike_at
from tests.unit.campaign.plans import a_campaign, a_stage
from hybridwatch_lab.gpu.campaign.runner import run_campaign
folder, ended, step = Path(sys.argv[1]), *map(int, sys.argv[2:])
code = "open({!r}, 'a').write('x'); print(1)"
stages = [a_stage(f"stage-{n}", code.format(str(folder / f"count-{n}"))) for n in range(12)]

def say(_line):
    global ended
    ended -= 1
    if ended == 0:
        strike_at(step)

if ended == 0:
    strike_at(step)
run_campaign(a_campaign(folder, *stages), say, resume=True)
"""
_STEPS = 1800
"""About as many as a stage makes."""
_NEVER = 10**9


def killed(folder, ended, step):
    """Run a campaign that kills itself some steps after so many stages; gives its status."""
    words = [sys.executable, "-c", _KILLED, str(folder), str(ended), str(step)]
    return subprocess.run(words, stdout=subprocess.DEVNULL, check=False).returncode


def answers(folder):
    path = folder / "campaign" / JOURNAL
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    # Every line, not the newest of each stage: an answer that stands twice is to be seen.
    entries = [StageEntry.model_validate_json(line) for line in lines if line.endswith(b"\n")]
    return [entry.stage for entry in entries if entry.end.is_final]


# At steps all over a stage, in the first one of a process or the second; twenty are for a release.
@pytest.mark.parametrize("kills", [6, pytest.param(20, marks=pytest.mark.slow)])
def test_campaign_killed_often_keeps_every_answer_and_repeats_none(tmp_path, kills):
    before: list[str] = []
    for number in range(kills):
        pair, ended = divmod(number, 2)
        step = 1 + _STEPS * pair // (kills // 2 - 1)
        assert killed(tmp_path, ended, step) == -signal.SIGKILL
        now = answers(tmp_path)
        assert now[: len(before)] == before
        assert len(now) >= len(before) + ended, "an end that was said is on disk"
        before = now
    assert killed(tmp_path, 0, _NEVER) == 0
    stages = answers(tmp_path)
    assert sorted(stages) == sorted(f"stage-{n}" for n in range(12)), "each answered once"
    assert all((tmp_path / "campaign" / f"{stage}.out").read_text() == "1\n" for stage in stages)


def test_two_campaigns_in_one_folder_are_refused(tmp_path):
    campaign = a_campaign(tmp_path, a_stage("one", "print(1)"))
    campaign.folder.mkdir(parents=True)
    with alone(campaign.folder), pytest.raises(CampaignError, match="another campaign is going on"):
        run_campaign(campaign, print, resume=False)


def test_journal_is_json_lines_that_name_command_end_and_files(tmp_path):
    campaign = a_campaign(tmp_path, a_stage("one", "print(1)"))
    run(campaign)
    (line,) = (campaign.folder / JOURNAL).read_text().splitlines()
    entry = json.loads(line)
    assert entry["stage"] == "one"
    assert entry["end"] == "answered"
    assert entry["left"] == ["one.out"]
    assert entry["command"][0] == sys.executable
