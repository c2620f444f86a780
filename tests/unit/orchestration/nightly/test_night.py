"""A night in processes of its own: held twice, killed half-way, locked, bounded, red and green."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import psutil
import pytest

from hybridwatch.analysis.policy import STRICT
from hybridwatch.database.connection import DATABASE_FILE
from hybridwatch.history.judge import replay
from hybridwatch.orchestration.nightly import night
from hybridwatch.orchestration.nightly.night import GATE, LOG, NIGHTS, REPORT, NightPlan, tonight
from hybridwatch.orchestration.nightly.suite import UNTIL_VARIABLE
from hybridwatch.records.store import list_records, list_verdicts
from tests.waiting import has_ended, wait_until

ROOT = Path(__file__).parents[4]
FIRST, SECOND = "smoke/dummy-run", "smoke/padded-graph-rows"
HANGS = "smoke.padded_graph_rows"

HOLD = """
import os
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from hybridwatch.analysis.policy import Policy, Rule
from hybridwatch.orchestration.nightly import night
from hybridwatch.orchestration.nightly.night import GuardedProcess, NightError, NightPlan, hold
from hybridwatch.system.stopping import stoppable
from tests.waiting import wait_until
results, fake, seconds, day = sys.argv[1:]
now = 0.0

class Measuring(GuardedProcess):
    # The time is up when the first scenario has its record, if it is up at all.
    def wait(self, seconds):
        global now
        if seconds != 4.0:
            return super().wait(3600)
        wait_until(lambda: list(Path(results).glob("nights/*/*.record")), "a record")
        now += seconds
        return super().wait(0.0)

night.GuardedProcess = Measuring
night.time = SimpleNamespace(monotonic=lambda: now, time=lambda: now)
def search(findings, seconds, say):
    (gate,) = Path(results).glob("nights/*/gate.json")
    say(f"{seconds:g} s to search after {gate.name}")
    (one, *_) = findings.reports
    return replace(findings, searched={one.contender.run_id: ["ttft changed with it"]})

POLICY = Policy((Rule("*", margin=0.04),))
plan = NightPlan(("smoke/dummy-run", "smoke/padded-graph-rows"), "cpu-0.27.1", "cpu-0.27.1",
            "a" * 40, Path(results), POLICY, (sys.executable, fake), Path("asv.conf.json"),
            Path.cwd(), float(seconds), search=search if "SEARCH" in os.environ else None)
try:
    with stoppable():
        folder, findings = hold(plan, date.fromisoformat(day), lambda line: print(line, flush=True))
except NightError as error:
    sys.exit(f"NightError: {error}")
except KeyboardInterrupt:
    sys.exit(130)
sys.exit(int(not findings.gate.passed))
"""


class Place:
    """A results folder, and what asv shall pretend there."""

    def __init__(self, folder: Path) -> None:
        self.results = folder / "results"
        self.calls_file = folder / "calls"
        self.pretended = folder / "pretend.json"
        self.pretend()

    def pretend(self, **modules: str) -> None:
        self.pretended.write_text(json.dumps(modules))

    def start(self, seconds: float = 600, day: str = "2026-03-01") -> subprocess.Popen[str]:
        fake = str(Path(__file__).with_name("pretended_asv.py"))
        return subprocess.Popen(
            [sys.executable, "-c", HOLD, str(self.results), fake, str(seconds), day],
            cwd=ROOT,
            env={
                **os.environ,
                "PRETEND": str(self.pretended),
                "CALLS": str(self.calls_file),
                "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def hold(self, status: int, **how) -> str:
        process = self.start(**how)
        said, _ = process.communicate()
        assert process.returncode == status, said
        return said

    @property
    def nights(self) -> list[Path]:
        return sorted(path for path in (self.results / NIGHTS).iterdir() if path.is_dir())

    @property
    def calls(self) -> list[str]:
        return [line.split()[0] for line in self.calls_file.read_text().splitlines()]

    def wait_for_records(self, count: int) -> None:
        def there() -> bool:
            return len(list(self.results.glob(f"{NIGHTS}/*/*.record"))) >= count

        wait_until(there, f"{count} records")


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def gate_of(night: Path):
    return json.loads((night / GATE).read_text())


def test_held_twice_it_adds_one_night(place):
    place.hold(0)
    (night,) = place.nights
    first = {path.name for path in night.iterdir()}
    assert {GATE, REPORT, LOG} <= first
    assert len(list_records(place.results)) == 2
    assert len(list_verdicts(place.results)) == 2
    place.hold(0)
    assert place.nights == [night]
    assert len(list_records(place.results)) == 2
    assert len(list_verdicts(place.results)) == 2
    assert place.calls == ["run", "run", "publish", "publish"]
    assert SECOND in (night / REPORT).read_text()
    said = (night / LOG).read_text().splitlines()
    assert f"[2/2] {SECOND}: measured" in said
    assert said.count("index: 2 records") == 2
    assert (place.results / DATABASE_FILE).exists()


def test_it_searches_once_the_gate_is_written_and_the_report_has_the_answer(place, monkeypatch):
    place.hold(0)
    (night,) = place.nights
    before = (night / GATE).read_text()
    assert "Bisected" not in (night / REPORT).read_text()
    monkeypatch.setenv("SEARCH", "1")
    said = place.hold(0)
    assert said.splitlines()[-1] == "600 s to search after gate.json"
    assert place.calls[-1] == "publish"
    named = f"**Bisected in <code>{FIRST}</code>:** ttft changed with it"
    assert named in (night / REPORT).read_text()
    assert (night / GATE).read_text() == before


def test_what_a_night_stores_can_be_had_again_whatever_its_policy(place):
    place.hold(0)
    replays = [replay(path, place.results)[1] for path in list_verdicts(place.results)]
    assert [again.same for again in replays] == [True, True]


def test_the_next_day_is_another_night(place):
    place.hold(0)
    place.hold(0, day="2026-03-02")
    assert len(place.nights) == 2
    assert len(list_records(place.results)) == 4


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_killed_half_way_and_held_again_it_completes_the_night(place, number):
    place.pretend(**{HANGS: "hang"})
    process = place.start()
    place.wait_for_records(2)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    process.communicate()
    # Nothing goes on measuring for a night that nobody holds any more.
    wait_until(lambda: all(map(has_ended, children)), "the end of what was measuring")
    (night,) = place.nights
    assert not (night / GATE).exists()

    place.pretend()
    # Even after midnight: it is still that night.
    place.hold(0, day="2026-03-02")
    assert place.nights == [night]
    assert gate_of(night)["passed"] is True
    # The first scenario was done, and the record of the second was there before the kill.
    assert place.calls == ["run", "run", "run", "publish"]
    assert len(list_records(place.results)) == 2


def test_two_at_a_time_are_refused(place):
    place.pretend(**{HANGS: "hang"})
    first = place.start()
    try:
        place.wait_for_records(2)
        assert "another night is running" in place.hold(1)
    finally:
        first.terminate()
        first.communicate()


def test_when_the_time_is_up_the_rest_is_missing_and_missing_is_not_green(place):
    place.pretend(**{"smoke.dummy_run": "hang"})
    said = place.hold(1, seconds=4)
    assert f"[1/2] {FIRST}: begins" in said
    assert f"{SECOND}: begins" not in said
    assert f"[1/2] {FIRST}: lost: not finished when the time was up" in said
    assert f"[2/2] {SECOND}: lost: not started before the time was up" in said
    (night,) = place.nights
    told = gate_of(night)
    assert told["passed"] is False
    assert any(SECOND in reason for reason in told["reasons"])
    assert place.calls[-1] == "publish"
    place.pretend()
    place.hold(0)
    assert gate_of(night)["passed"] is True


def test_a_slower_engine_turns_the_night_red_and_the_report_says_so(place):
    place.pretend(**{HANGS: "slow"})
    place.hold(1)
    (night,) = place.nights
    assert "ttft" in " ".join(gate_of(night)["reasons"])
    report = (night / REPORT).read_text()
    assert "regression" in report
    assert SECOND in report


def test_a_measurement_that_dies_is_reported_and_tried_again(place):
    place.pretend(**{HANGS: "die"})
    said = place.hold(1)
    assert "asv ended with status 1 and there is no record" in said
    (night,) = place.nights
    assert HANGS.replace(".", r"\.") in (night / LOG).read_text()
    place.pretend()
    place.hold(0)
    assert gate_of(night)["passed"] is True


def test_builds_and_commits_have_nights_of_their_own(tmp_path):
    def named(build: str, commit: str) -> str:
        plan = NightPlan((), build, build, commit, tmp_path, STRICT, (), tmp_path, tmp_path, 1.0)
        return tonight(tmp_path, date(2026, 3, 1), plan).name

    names = {named("a", "1" * 40), named("b", "1" * 40), named("a", "2" * 40)}
    assert len(names) == 3
    assert names == {"2026-03-01-a-11111111", "2026-03-01-b-11111111", "2026-03-01-a-22222222"}


@pytest.mark.parametrize("wanted", [True, False])
def test_a_session_knows_until_when_it_may_measure_again(tmp_path, wanted):
    plan = night.NightPlan(
        ["smoke/padded"], "one", "one", "c" * 40, tmp_path, STRICT, ["asv"], tmp_path / "asv.json",
        tmp_path, 600.0, second_look=wanted,
    )  # fmt: skip
    held = night._Night(plan, tmp_path, 0.0, print)
    before = time.time()
    until = float(held._variables("smoke/padded", 600.0)[UNTIL_VARIABLE])
    assert (before + 600 <= until <= time.time() + 600) if wanted else until == 0
