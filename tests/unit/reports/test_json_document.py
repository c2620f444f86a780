"""docs/json.md, and for a lab's verb its page, name every field that the JSON has, and no other."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from hybridwatch.analysis.alerts import AlertGroup
from hybridwatch.analysis.change_point import ChangePoint, Drift, History, HistoryState
from hybridwatch.analysis.change_review import Absent, ChangeReview
from hybridwatch.analysis.control import Control, ControlKind
from hybridwatch.analysis.detection import find_known_bad
from hybridwatch.analysis.gate import gate
from hybridwatch.analysis.replay import Deviation, VerdictReplay
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Interval, Verdict
from hybridwatch.analysis.wording.report_json import ReportAnswer, to_json
from hybridwatch.cli.exchange import Haul, Taken
from hybridwatch.cli.main import cli
from hybridwatch.cli.notify import notify_to_json
from hybridwatch.cli.results import index_to_json
from hybridwatch.cli.store import plan_to_json, store_check_to_json
from hybridwatch.database.queries import open_index
from hybridwatch.engines.code_tree import Commit
from hybridwatch.formats.read.history_csv import WrittenSeries
from hybridwatch.integrations.notify.sending import Sent
from hybridwatch.metrics import Direction
from hybridwatch.orchestration.bisect.bisector import BisectResult, Confirmation, FixTrial
from hybridwatch.orchestration.bisect.candidates import Candidate, CandidateList
from hybridwatch.orchestration.bisect.question import (
    Bracket,
    ChangeDirection,
    ExactQuestion,
    ProbeAnswer,
    ProbeOutcome,
    ProbeState,
)
from hybridwatch.orchestration.bisect.search import CandidateOutcome, SearchResult
from hybridwatch.orchestration.bisect.words import to_json as search_to_json
from hybridwatch.orchestration.fleet.job import HostStatus, JobState
from hybridwatch.orchestration.fleet.overview import (
    BatchOverview,
    HostLine,
    Overview,
    Trouble,
    Underway,
    job_json,
)
from hybridwatch.pages.site import SiteChange
from hybridwatch.records.store import Intake, Stored
from hybridwatch.records.store.maintenance import PrunePlan, Removal, StoreCheck, What
from hybridwatch.reports.detection import DetectionReport, detections_to_json
from hybridwatch.reports.explanation import replay_to_json
from hybridwatch.reports.jsonform import (
    alert_to_json,
    control_to_json,
    findings_to_json,
    gate_to_json,
    known_bad_to_json,
    records_to_json,
)
from hybridwatch_lab.commands.engine_track import releases_to_json
from hybridwatch_lab.releases.track import Tracked, TrackStep
from hybridwatch_lab.releases.track import TrackOutcome as StepOutcome
from tests.broken_engines import dead_contender
from tests.builders import a_run
from tests.curves import a_swept_run, even, tilted
from tests.situations import SITUATIONS
from tests.unit.analysis.alerts.builders import alert_of
from tests.unit.integrations.notify.pretended import a_message
from tests.unit.orchestration.fleet.pretended import a_job

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "json.md"
OF_THE_LAB = ROOT / "lab" / "docs" / "new-releases.md"
FOUND = ChangeReview((), (Absent("smoke/x", "missing"),))
REPLAYED = VerdictReplay((Deviation("tests", 1, 2),), (), ())
CHANGE = ChangePoint(1, 0.1, Interval(0.05, 0.15, 0.95), HistoryState.CONFIRMED, 1, 1)
DRIFT = Drift(0, 0, 1, 1, 0.1)
DETECTED = DetectionReport(
    WrittenSeries("ttft", ("1", "2"), (1.0, 2.0), None),
    History((CHANGE,), (DRIFT,)),
    None,
    Direction.LOWER,
)
TRACKED = Tracked("tiny-1.1", "track/1.1", "", (TrackStep("lock", StepOutcome.FAILED, "why"),))
FREE = {"fixes", "flags"}  # keyed by names of fixes and flags


def keys_of(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from keys_of(item)
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            if key not in FREE:
                yield from keys_of(item)


def described_fields(text: str) -> set[str]:
    """The fields with which the items of the page begin."""
    items = re.findall(r"^ *- ((?:`\w+`\??(?: \([^)]*\))?(?:, )?)+)(?:: |:?$)", text, re.M)
    return {name for item in items for name in re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", item))}


def report_fields() -> set[str]:
    """Every field of a report, also those that only some reports have."""
    schema = ReportAnswer.model_json_schema()
    return {
        name for part in (schema, *schema["$defs"].values()) for name in part.get("properties", ())
    }


def a_search() -> BisectResult:
    """Two commits, of which the later one did it."""
    commit = Commit("c0ffee", "A. Author", "One row less (#12)", ("vllm/v1/worker.py",))
    candidates = (Candidate("a", "a", str), Candidate("c0ffee", "One row less", str, 1.0, commit))
    measured = CandidateOutcome(1, ProbeOutcome(state=ProbeState.MEASURED), ProbeAnswer.CHANGED)
    question = ExactQuestion("contract.wrong_tokens", ChangeDirection.REGRESSION, 0, 7)
    found = SearchResult(CandidateList("commits", candidates), question, Bracket(0, 1), (measured,))
    sure = Confirmation(True, "0 and 7", ("a", "b"), "r.json")
    return BisectResult([found], sure, found, [FixTrial("padded-rows-prefilling", "b", True)])


def a_fleet() -> Overview:
    """A night with a job that runs, one that failed, and a host."""
    at = a_job().planned_at
    return Overview(
        at,
        (BatchOverview("first", at, {}),),
        (Underway(a_job(), "h0", at, None),),
        {},
        (Trouble(a_job(), JobState.FAILED, "why", "a.txt"),),
        (HostLine("h0", HostStatus.READY, True, "", at, at, 1, ""),),
    )


def ingested(results: Path):
    haul = Haul(Intake(results), quiet=True)
    haul.wait(Taken("a.json", "record", "1f0a9c3e", "r.json", new=True))
    haul.write()
    haul.refuse("b.json", "why")
    return haul.to_json()


def listed_tokens(results: Path):
    """What ``token list --json`` prints of one token."""
    there = ["--results", str(results)]
    call = CliRunner().invoke
    made = call(cli, ["token", "make", "ci", "--scope", "read", *there])
    assert made.exit_code == 0, made.output
    return json.loads(call(cli, ["token", "list", "--json", *there]).stdout)


def test_gpus_have_fields_of_their_own_and_processors_do_not() -> None:
    report = SITUATIONS["regression"]()
    plain = report.baseline.testbed
    whole = replace(plain, gpus=("L4",), gpu_memory_bytes=(24,), gpu_power_limits_w=(72.0,))
    told = to_json(replace(report, contender=replace(report.contender, testbed=whole)))
    assert {key for key in told["baseline"]["testbed"] if key.startswith("gpu_")} == set()
    assert told["contender"]["testbed"]["gpu_memory_bytes"] == [24]
    assert told["contender"]["testbed"]["gpu_power_limits_w"] == [72.0]
    assert "`gpu_memory_bytes` and `gpu_power_limits_w`" in DOCUMENT.read_text(encoding="utf-8")


def test_a_planted_field_of_the_page_is_found() -> None:
    page = (
        "- `one`?, `two` (`cpu`): x\n  - `three` (y)\n- `a b --json` has `four`\n- Of `five`: z\n"
    )
    assert described_fields(page) == {"one", "two", "three"}


def test_every_field_is_documented_and_exists(tmp_path) -> None:
    report = SITUATIONS["regression"]()
    fields = set(keys_of(gate_to_json(gate(report), report)))
    dead = build_report(dead_contender())
    fields |= set(keys_of(gate_to_json(gate(dead), dead)))
    fields |= set(keys_of(findings_to_json(gate(report), FOUND)))
    fields |= set(keys_of(to_json(build_report(a_swept_run(even, tilted)))))
    fields |= set(keys_of(known_bad_to_json(find_known_bad(report))))
    stored = Stored(tmp_path / "a.json", a_run({"tpot": (1.0,)}))
    fields |= set(keys_of(records_to_json([stored], {"b.json": "why"}, more=False)))
    fields |= set(control_to_json(Control("s", "f", ControlKind.A_A, True, "m", "d")))
    fields |= set(keys_of(replay_to_json(REPLAYED, report, report.comparisons)))
    fields |= set(keys_of(detections_to_json([DETECTED])))
    fields |= set(keys_of(ingested(tmp_path)))
    plan = PrunePlan((Removal("a", What.RECORD, 1),), 1, {"1f0a9c3e": "why"})
    fields |= set(keys_of(plan_to_json(plan, removed=False)))
    wrong = StoreCheck(wrong={"a.json": "why"})
    fields |= set(keys_of(store_check_to_json(wrong, sealed=False, repaired=False)))
    fields |= set(keys_of(index_to_json(open_index(tmp_path))))
    fields |= set(keys_of(search_to_json("smoke/x", a_search(), "hybridwatch bisect", 1.5)))
    fields |= set(keys_of(releases_to_json("1.0", ["1.1"], [TRACKED])))
    fields |= set(keys_of(a_fleet().to_json())) | set(keys_of(job_json(a_job())))
    fields |= set(keys_of(alert_to_json(AlertGroup((alert_of(Verdict.REGRESSION),)))))
    fields |= set(keys_of(listed_tokens(tmp_path)))
    fields |= set(keys_of(notify_to_json([Sent("team", "slack", sent=[a_message()])])))
    fields |= report_fields()
    fields |= set(SiteChange(1, 1, 0, 1).to_json())
    text = DOCUMENT.read_text(encoding="utf-8")
    text += OF_THE_LAB.read_text(encoding="utf-8").partition("## JSON")[2]
    named = set(re.findall(r"`([a-z_0-9]+)`", text))
    assert fields <= named
    described = described_fields(text)
    assert len(described) > 150
    assert described <= fields
