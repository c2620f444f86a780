"""Records of builds that are numbers: from one of them on something is wrong."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from hybridwatch.orchestration.fleet.cluster import JobCommand, JobResult
from hybridwatch.records.codec import encode
from hybridwatch.records.run import Phase, Sample, Trial
from tests.unit.orchestration.fleet.pretended_run import a_record

METRIC = "contract.wrong_tokens"
BLOCKS = 20


def a_trial(side: int, phase: Phase, started: datetime, sample: Sample) -> Trial:
    return Trial(
        index=0, side=side, phase=phase, started_at=started, duration_s=1.0, samples=(sample,)
    )


def planted(
    change: int, *, slower: float = 0.0, dumb: frozenset[str] = frozenset()
) -> Callable[[JobCommand, datetime], JobResult]:
    """Say what measurements bring home.

    Args:
        change: The first build that is bad.
        slower: By how much its time is longer; without, its contract is broken.
        dumb: Builds whose engine does not come up.
    """

    def trials(label: str, side: int, started: datetime, *, is_pair: bool) -> list[Trial]:
        is_bad = int(label.rpartition("-")[2].rpartition(".")[2]) >= change
        count = 7.0 if is_bad and not slower else 0.0
        contract = a_trial(side, Phase.CONTRACT, started, Sample(METRIC, (count,)))
        times = (0.05 * (1 + 0.002 * (at % 3)) * (1 + slower * is_bad) for at in range(BLOCKS))
        timed = (a_trial(side, Phase.PERFORMANCE, started, Sample("ttft", (one,))) for one in times)
        return [*timed] if is_pair and slower else [contract]

    def bring(work: JobCommand, started: datetime) -> JobResult:
        _, _, _, scenario, _, _, *labels = work.command
        if dumb & set(labels):
            return JobResult(b"made up\n", reason="it ended with status 2: no engine came up")
        sides = [
            trials(label, side, started, is_pair=len(labels) > 1)
            for side, label in enumerate(labels)
        ]
        every = (trial for block in zip(*sides, strict=True) for trial in block)
        numbered = tuple(replace(trial, index=index) for index, trial in enumerate(every))
        run = replace(a_record(scenario, labels, work.testbed_host, started), trials=numbered)
        encoded = encode(run)
        return JobResult(b"made up\n", encoded.record, encoded.bulk)

    return bring
