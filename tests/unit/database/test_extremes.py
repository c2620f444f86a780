"""The largest numbers that a record may hold bring down neither the index nor a verb."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hybridwatch.database.queries import open_index
from hybridwatch.records.fields import LARGEST, LONGEST_NAME, SMALLEST
from hybridwatch.records.run import Run
from hybridwatch.records.store import write_run
from tests.builders import Trials, a_comparison
from tests.command_line import run_verb

SIDE: dict[str, Trials] = {
    "ttft": (0.04, 0.05, 0.06, 0.04, 0.05, 0.06, 0.05),
    "accuracy.recall": "1" * 90,
}


def with_values(*values: float) -> Run:
    return a_comparison({"ttft": values[:1] * 7}, {"ttft": values * 7})


def lasting(seconds: float) -> Run:
    run = a_comparison(SIDE, SIDE)
    return replace(run, trials=tuple(replace(one, duration_s=seconds) for one in run.trials))


PLAIN = a_comparison(SIDE, SIDE)
EXTREMES: dict[str, Run] = {
    "version": replace(PLAIN, scenario=replace(PLAIN.scenario, version=2**31 - 1)),
    "early": replace(PLAIN, started_at=datetime(1970, 1, 1, tzinfo=UTC)),
    "late": replace(PLAIN, started_at=datetime(2199, 12, 31, 23, 59, tzinfo=UTC)),
    "memory": replace(PLAIN, testbed=replace(PLAIN.testbed, memory_bytes=2**60, cores=2**31 - 1)),
    "large": with_values(LARGEST, -LARGEST),
    "small": with_values(SMALLEST, LARGEST, 0.0),
    "long": lasting(1e9),
    "named": replace(
        PLAIN, builds=tuple(replace(b, label="x" * LONGEST_NAME) for b in PLAIN.builds)
    ),
}


@pytest.mark.parametrize("extreme", EXTREMES.values(), ids=EXTREMES)
@pytest.mark.parametrize(
    "words",
    [
        ("compare", "latest", "--json"),
        ("compare", "latest"),
        ("records",),
        ("export", "--to", "hud", "latest"),
        ("comment", "--dry-run", "latest"),
    ],
    ids=lambda words: " ".join(words),
)
def test_extremes_have_an_answer_from_every_verb(tmp_path: Path, extreme: Run, words) -> None:
    write_run(tmp_path, extreme)
    answer = run_verb(*words, "--results", tmp_path)
    assert answer.exception is None or isinstance(answer.exception, SystemExit), answer
    assert answer.exit_code in {0, 1}, answer.output
    if "--json" in words:
        json.loads(answer.stdout, parse_constant=pytest.fail)


def test_extremes_are_indexed(tmp_path: Path) -> None:
    for number, run in enumerate(EXTREMES.values()):
        write_run(tmp_path, replace(run, id=f"{number:08x}"))
    index = open_index(tmp_path)
    assert index.kept
    assert index.counts["broken"] == 0
