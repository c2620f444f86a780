"""Damaged and falsified files of every format: one clear line, or what the file says.

``pytest -m slow tests/unit/formats/read/test_mutated_files.py`` does a thousand; another number
and seed come from the environment, ``HYBRIDWATCH_MUTATIONS`` and ``HYBRIDWATCH_SEED``.
"""

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hybridwatch.errors import IngestError, RecordError
from hybridwatch.formats.read.document import parse
from hybridwatch.formats.read.foreign import ForeignInput
from hybridwatch.formats.read.read import read_foreign
from hybridwatch.records.codec import decode, encode
from hybridwatch.records.run import Trial
from hybridwatch.records.store import read_run
from tests.command_line import run_verb
from tests.plain_readings import PLAIN, explains

FOREIGN = Path(__file__).parents[3] / "fixtures" / "foreign"
MANY = int(os.environ.get("HYBRIDWATCH_MUTATIONS", "1000"))
FEW = 120
SEED = int(os.environ.get("HYBRIDWATCH_SEED", "1700"))
LONGEST = 500
"""Characters of a line that somebody reads; a path is not counted."""

LM_EVAL = "2026-11-21T20-12-50.360266"
CASES = [
    ["vllm-bench/serve.json"],
    ["vllm-bench/appended.jsonl"],
    ["vllm-bench/latency.json"],
    ["vllm-bench/throughput.json"],
    ["made-up/vllm-bench/serving-0.6.json"],
    ["made-up/vllm-bench/inferencex-random.json"],
    ["made-up/vllm-bench/multi-turn.json"],
    ["guidellm/report.json"],
    ["made-up/guidellm/0.3.json"],
    ["made-up/guidellm/0.5.json"],
    ["aiperf/profile_export_aiperf.json", "aiperf/profile_export.jsonl"],
    [f"made-up/aiperf/0.2/profile_export{end}" for end in ("_aiperf.json", ".jsonl")],
    [
        f"lm-eval/results_{LM_EVAL}.json",
        f"lm-eval/samples_hybridwatch_recall_{LM_EVAL}.jsonl",
        f"lm-eval/samples_hybridwatch_word_problems_{LM_EVAL}.jsonl",
    ],
    ["made-up/lm-eval/0.4.1/results.json"],
    ["made-up/inferencex/agg.json"],
    ["made-up/inferencex/sessions.json"],
    [
        "asv/lab-1/d4ad43a0-existing-py_venv_bin_python3.json",
        "asv/lab-1/machine.json",
        "asv/benchmarks.json",
    ],
    ["made-up/asv/lab-0/89abcdef-py3.6.json"],
    ["made-up/sglang/bench.jsonl"],
    ["made-up/sglang/details.jsonl"],
    [
        "made-up/inference-perf/stage_1_lifecycle_metrics.json",
        "made-up/inference-perf/per_request_lifecycle_metrics.json",
    ],
    ["made-up/genai-perf/profile_export_genai_perf.json"],
    [
        f"made-up/llmperf/acme-hybrid-9b_32_12_{it}.json"
        for it in ("summary", "individual_responses")
    ],
    ["made-up/hud/serve.pytorch.json"],
    ["made-up/hud/latency.pytorch.json"],
    ["pytest-benchmark/0001_rounds.json"],
    ["google-benchmark/repetitions.json"],
    ["made-up/github-action-benchmark/output.json"],
    ["made-up/bencher/results.json"],
]

ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    -0.25,
    0.5,
    1e-300,
    1e308,
    10**30,
    10**400,
    float("nan"),
    float("inf"),
    "",
    "7",
    "NaN",
    "\x1b[2J\n\u202e",
    "../../x",
    "x" * 100_000,
    [],
    [[]],
    [None],
    {},
    {"": 0},
)


def nested(depth: int) -> Any:
    value: Any = 1
    for place in range(depth):
        value = [value] if place % 2 else {"a": value}
    return value


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container with every key or index of it."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


def delete(rng: random.Random, where: Any, key: Any) -> None:
    del where[key]


def replace(rng: random.Random, where: Any, key: Any) -> None:
    where[key] = rng.choice(ODD)


def bury(rng: random.Random, where: Any, key: Any) -> None:
    where[key] = nested(rng.choice((3, 60, 200, 700)))


def rescale(rng: random.Random, where: Any, key: Any) -> None:
    if isinstance(where[key], int | float) and abs(where[key]) < 1e300:
        where[key] = where[key] * rng.choice((-1, 0.001, 1000, 0.5, 3))
    elif isinstance(where[key], str):
        where[key] = where[key][: len(where[key]) // 2]


def repeat(rng: random.Random, where: Any, key: Any) -> None:
    if isinstance(where, list):
        where.insert(key, where[key])
    else:
        where[f"{key}_"] = where.pop(key)


CHANGES: tuple[Callable[[random.Random, Any, Any], None], ...] = (
    delete,
    replace,
    replace,
    bury,
    rescale,
    rescale,
    repeat,
)


def restructured(rng: random.Random, raw: bytes, *, is_lines: bool) -> bytes:
    texts = raw.decode().splitlines() if is_lines else [raw.decode()]
    row = rng.randrange(len(texts))
    told = json.loads(texts[row])
    for _ in range(rng.choice((1, 1, 2))):
        found = list(places(told))
        if found:
            rng.choice(CHANGES)(rng, *rng.choice(found))
    texts[row] = json.dumps(told)
    return "\n".join(texts).encode()


def mutated(rng: random.Random, raw: bytes, *, is_lines: bool) -> bytes:
    """Change a file as disks, hands and other versions of its tool do."""
    kind = rng.random()
    if kind < 0.65:
        return restructured(rng, raw, is_lines=is_lines)
    place = rng.randrange(len(raw))
    if kind < 0.75:
        return raw[:place]
    if kind < 0.9:
        return raw[:place] + bytes([raw[place] ^ 1 << rng.randrange(8)]) + raw[place + 1 :]
    if kind < 0.95:
        return raw[:place] + raw[place + rng.randrange(1, 40) :]
    return raw[:place] + b"[" * rng.choice((10, 5000, 100_000)) + raw[place:]


def write_case(folder: Path, seed: int) -> None:
    """Write the files of one tool, one of them damaged."""
    rng = random.Random(seed)
    names = CASES[seed % len(CASES)]
    damaged = rng.choice((names[0], rng.choice(names)))
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = (FOREIGN / name).read_bytes()
        if name == damaged:
            raw = mutated(rng, raw, is_lines=name.endswith(".jsonl"))
        path.write_bytes(raw)


def check_trial(file: Path, form: str, trial: Trial) -> None:
    """Hold a trial against every trial that the file could give, read in another way."""
    if trial.failure is not None:
        assert not trial.samples
        return
    for sample in trial.samples:
        assert sample.metric.startswith("asv_number.") or min(sample.values) >= 0
    readings = list(PLAIN[form](file))
    assert any(
        all(explains(one, each.metric, each.statistic, each.values) for each in trial.samples)
        for one in readings
    ), f"{file}: {trial.samples}"


def check_case(folder: Path, seed: int) -> None:
    """Ingest a case: no traceback, nothing passed over, one line or the file's own values."""
    write_case(folder / "in", seed)
    words = ["ingest", str(folder / "in"), "--results", str(folder / "out"), "--json"]
    answer = run_verb(*words)
    assert answer.exception is None or isinstance(answer.exception, SystemExit), answer.exc_info
    told = json.loads(answer.stdout)
    assert told["bad"] or told["taken"]
    assert answer.exit_code in ({1, 2} if told["bad"] else {0})
    for bad in told["bad"]:
        reason = bad["reason"].replace(str(folder), "")
        assert len(reason.splitlines()) == 1, bad
        assert reason.isprintable(), bad
        assert len(reason) < LONGEST, bad
        assert "expected" in reason, bad
    for taken in told["taken"]:
        for trial in read_run(Path(taken["record"])).trials:
            check_trial(Path(taken["file"]), taken["format"], trial)
    shutil.rmtree(folder)


def test_a_damaged_file_is_refused_in_a_line_or_read_as_it_is(tmp_path) -> None:
    for seed in range(SEED, SEED + FEW):
        check_case(tmp_path / str(seed), seed)


def test_no_oddity_in_a_file_is_more_than_a_line_of_text(tmp_path) -> None:
    rng = random.Random(7)
    bad = tmp_path / "bad.json"
    refused: list[str] = []
    for name in [names[0] for names in CASES if names[0].endswith(".json")]:
        raw = (FOREIGN / name).read_bytes()
        for _ in range(150):
            told = json.loads(raw)
            replace(rng, *rng.choice(list(places(told))))
            bad.write_text(json.dumps(told))
            try:
                for run in read_foreign(parse(bad, bad.read_bytes()), ForeignInput()):
                    encoded = encode(run)
                    assert decode(encoded.record, encoded.bulk) == run, name
            except (IngestError, RecordError) as error:
                refused.append(str(error))
    assert len(refused) > 100
    assert all(len(text.splitlines()) == 1 for text in refused)


@pytest.mark.slow
def test_a_thousand_damaged_files_are_refused_in_a_line_or_read_as_they_are(tmp_path) -> None:
    for seed in range(SEED + FEW, SEED + FEW + MANY):
        check_case(tmp_path / str(seed), seed)
