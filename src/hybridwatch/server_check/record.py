"""A check as a record of the store, and what the analysis of one says of two servers."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from hybridwatch.formats.read.document import ForeignDocument
from hybridwatch.formats.read.foreign import ForeignInput, ForeignRun, build_run
from hybridwatch.records.run import UNKNOWN, Answer, Failure, Phase, Run, Sample, Trial
from hybridwatch.server_check.pair import TASK, TASK_VERSION
from hybridwatch.server_check.result import Break, CheckResult, PairResult, Side, Tally

FORMAT: Final = "hybridwatch-check"
_CONTRACT: Final = "contract.check_"
_FILE: Final = Path("check.json")
_ACCURACY: Final = f"accuracy.{TASK}"


def build_record(result: CheckResult, labels: tuple[str, ...] = ()) -> Run:
    """Make the run of a check: breaks of each relation are contracts, of which 0 is expected.

    Of two servers the first is the baseline. By itself it breaks nothing: its answers are those
    that the second one's are compared with.

    Args:
        result: Of the check.
        labels: What the servers are called, in their order; else their host and port.
    """
    raw = json.dumps(result.as_json(), sort_keys=True).encode()
    urls = [result.url, *([result.pair.url] if result.pair else ())]
    names = [*labels, *(urlsplit(url).netloc for url in urls[len(labels) :])]
    releases = [release or UNKNOWN for release in (*result.releases, "", "")]
    finished_at = result.started_at + timedelta(minutes=result.minutes)
    workload = {
        "model": result.model,
        "gentle": result.gentle,
        "strict": result.strict,
        "servers": len(urls),
    }
    run = build_run(
        ForeignDocument(_FILE, raw, ()),
        FORMAT,
        ForeignRun(
            tool=f"hybridwatch {version('hybridwatch')}",
            scenario=f"check/{result.model}",
            workload=workload,
            started_at=result.started_at,
            finished_at=finished_at,
            trials=[*_contracts(result), *(_of_pair(result, result.pair) if result.pair else ())],
            build=names[0],
            release=releases[0],
        ),
        ForeignInput(testbed=urlsplit(result.url).hostname),
    )
    one = run.builds[0]
    builds = (
        replace(one, label=name, name=name, release=release)
        for name, release in zip(names, releases, strict=False)
    )
    return replace(run, builds=tuple(builds))


def _contracts(result: CheckResult) -> Iterator[Trial]:
    decided = {
        _CONTRACT + tally.name: tally
        for tally in result.tallies.values()
        if tally.is_decided and tally.name != "answers"
    }
    trial = Trial(0, 0, Phase.CONTRACT, result.started_at, 60 * result.minutes)
    if result.pair is not None:
        yield replace(trial, samples=tuple(Sample(name, (0.0,)) for name in decided))
        trial = replace(trial, side=1)
    trial = replace(trial, client_result=result.as_json())
    if result.stopped and not result.broke:
        yield replace(trial, failure=Failure(result.stopped, ""))
    else:
        found = (Sample(name, (float(tally.broken),)) for name, tally in decided.items())
        yield replace(trial, samples=tuple(found))


def _of_pair(result: CheckResult, pair: PairResult) -> Iterator[Trial]:
    for at in (0, 1) if pair.questions else ():
        answers = tuple(_answers(pair, at))
        sample = Sample(_ACCURACY, tuple(float(one.correct) for one in answers))
        trial = Trial(0, at, Phase.ACCURACY, result.started_at, 0.0)
        yield replace(trial, samples=(sample,), answers=answers)
    for block in pair.blocks:
        for at, side in enumerate(block.sides):
            trial = Trial(0, at, Phase.PERFORMANCE, block.started_at, side.seconds)
            yield replace(trial, samples=tuple(_samples(side)))


def _samples(side: Side) -> Iterator[Sample]:
    yield Sample("ttft", tuple(side.ttft))
    if side.tpot:
        yield Sample("tpot", tuple(side.tpot))
    if side.throughput is not None:
        yield Sample("output_throughput", (side.throughput,))


def _answers(pair: PairResult, side: int) -> Iterator[Answer]:
    for number, one in enumerate(pair.questions):
        prompt, target = _digest(one.prompt), _digest(one.target)
        yield Answer(
            task=TASK,
            task_version=TASK_VERSION,
            doc_id=number,
            doc_hash=_digest(one.prompt + one.target),
            prompt_hash=prompt,
            target_hash=target,
            prompt=one.prompt,
            target=one.target,
            response=one.responses[side],
            correct=one.responses[side] == one.target,
        )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def judge_pair(result: CheckResult, pair: PairResult) -> None:
    """Write down what the analysis says of two servers: lost answers, and speeds as ratios."""
    from hybridwatch.analysis.report import build_report
    from hybridwatch.analysis.verdict import Verdict

    for one in build_report(build_record(result)).comparisons:
        if one.metric.id == _ACCURACY and one.verdict is Verdict.REGRESSION:
            _add_lost(result.tallies["answers"], pair)
        if one.metric.kind.has_noise and one.effect is not None and one.statistic != "p99":
            around = one.interval
            pair.speeds.append(
                {
                    "name": one.metric.label(one.statistic),
                    "metric": one.metric.id,
                    "ratio": 1 + one.effect,
                    "interval": around and [1 + around.low, 1 + around.high],
                    "blocks": one.pairs or len(pair.blocks),
                    "verdict": one.verdict.value,
                }
            )


def _add_lost(tally: Tally, pair: PairResult) -> None:
    """Note that the second server lost answers, by the first question that it lost."""
    right = [tuple(one.target == said for said in one.responses) for one in pair.questions]
    old, new = (sum(column) for column in zip(*right, strict=True))
    lost = pair.questions[right.index((True, False))]
    said = f"{TASK}: {old} of {len(right)} questions answered right by the first server, {new} here"
    tally.add_break(Break(said, lost.responses[0], lost.responses[1], lost.curl))
