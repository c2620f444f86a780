import gzip
import hashlib
import json
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybridwatch.errors import RecordError
from hybridwatch.records.codec import SCHEMA_VERSION, decode, encode
from hybridwatch.records.file_parts import render_sealed
from hybridwatch.records.run import (
    CLOSE,
    Answer,
    CloseCall,
    Completion,
    Failure,
    GpuState,
    InterimAnalyses,
    MachineState,
    Phase,
    Run,
    Sample,
    Trial,
)
from tests.store_builders import REGRESSED, STARTED, Plan, run

GOLDEN = Path(__file__).parents[2] / "golden" / "record"

SMALL = run(Plan(documents=3, performance_trials=1, failed_trials=1))
OF_A_GPU = replace(
    SMALL.testbed,
    id="nvidia-h200-x2-16c-0f1e2d",
    gpus=("NVIDIA H200", "NVIDIA H200"),
    driver="570.133.20",
    cuda="12.8",
    gpu_memory_bytes=(150754820096, 150754820096),
    gpu_power_limits_w=(700.0, 700.0),
)

# JSON text cannot hold lone surrogates; a test of its own covers them.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
sizes = st.floats(1e-30, 1e30)
numbers = sizes | sizes.map(lambda size: -size) | st.sampled_from([0.0, -0.0])
wholes = st.integers(1 - 2**63, 2**63 - 1)
times = st.datetimes(datetime(2020, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
metrics = st.sampled_from(["ttft", "output_throughput", "accuracy.recall", "contract.any"])
samples = st.builds(Sample, metrics, st.lists(numbers, max_size=40).map(tuple))
answers = st.builds(Answer, *[texts] * 2, wholes, *[texts] * 6, st.booleans())
shares = st.none() | st.floats(0, 1)
clocks = st.none() | st.floats(1, 1e12)
gpus = st.builds(
    GpuState,
    st.integers(0, 15),
    st.integers(1, 10_000),
    clocks,
    clocks,
    st.none() | st.floats(0, 1e4),
    st.none() | st.floats(-50, 150),
    shares,
    st.none() | st.dictionaries(texts, st.floats(0, 1), max_size=3),
    st.none() | st.integers(0, 2**40),
)
surroundings = st.builds(
    MachineState,
    st.floats(1e-9, 1e9),
    st.floats(1e-9, 1e9),
    shares,
    clocks,
    st.lists(gpus, max_size=2).map(tuple),
)
planned = st.lists(st.integers(1, 1000), min_size=1, max_size=6, unique=True).map(sorted)
looks = planned.flatmap(
    lambda due: st.integers(0, len(due)).map(
        lambda made: InterimAnalyses(tuple(due), tuple(due[:made]))
    )
)
tokens = st.integers(0, 2**31 - 1)
calls = st.builds(CloseCall, tokens, tokens, st.floats(0, CLOSE))
completions = st.lists(tokens, max_size=4).flatmap(
    lambda said: st.builds(
        Completion,
        st.from_regex(r"[0-9a-f]{8}", fullmatch=True),
        st.just(tuple(said)),
        st.just(()) | st.tuples(*[st.floats(-1e4, 0)] * len(said)),
        st.lists(calls, max_size=3).map(tuple),
        st.none() | st.booleans(),
    )
)
trials = st.builds(
    Trial,
    index=st.just(0),
    side=st.integers(0, 1),
    phase=st.sampled_from(Phase),
    started_at=times,
    duration_s=st.floats(0, 1e9),
    warmup=st.booleans(),
    samples=st.lists(samples, max_size=3).map(tuple),
    failure=st.none() | st.builds(Failure, texts, texts),
    answers=st.lists(answers, max_size=3).map(tuple),
    client_result=st.none()
    | st.dictionaries(texts, texts | numbers | st.lists(wholes) | st.none(), max_size=3),
    surroundings=st.none() | surroundings,
    completions=st.lists(completions, max_size=3).map(tuple),
    start=st.none() | st.integers(0, 99),
)


runs = st.builds(
    lambda many, started, revision, looked, again, testbed: replace(
        SMALL,
        testbed=testbed,
        trials=tuple(replace(trial, index=index) for index, trial in enumerate(many)),
        looks=looked,
        second_look=again if looked is None and (again or 0) < len(many) else None,
        started_at=started,
        harness=replace(SMALL.harness, revision=revision),
    ),
    st.lists(trials, max_size=4),
    times,
    st.none() | texts,
    st.none() | looks,
    st.none() | st.integers(1, 3),
    st.sampled_from([SMALL.testbed, OF_A_GPU]),
)


def altered(change: Any) -> bytes:
    """The small record with one thing changed, and a digest that is right."""
    raw = json.loads(encode(SMALL).record)
    change(raw)
    return json.dumps(raw).encode() if ("NaN" in json.dumps(raw)) else render_sealed(raw).encode()


@given(runs)
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_every_run_comes_back_as_it_was(original: Run) -> None:
    encoded = encode(original)
    assert decode(encoded.record, encoded.bulk) == original


def test_equal_runs_give_equal_bytes() -> None:
    assert encode(run(REGRESSED)) == encode(run(REGRESSED))


def test_record_alone_gives_trials_without_answers() -> None:
    encoded = encode(SMALL)
    alone = decode(encoded.record, None)
    assert alone.trials == tuple(
        replace(trial, answers=(), client_result=None) for trial in SMALL.trials
    )


def test_run_without_answers_has_no_bulk() -> None:
    bare = replace(SMALL, trials=())
    encoded = encode(bare)
    assert encoded.bulk is None
    assert json.loads(encoded.record)["bulk"] is None
    assert decode(encoded.record, None) == bare


def test_golden_record_of_version_1_is_still_read() -> None:
    record, bulk = (GOLDEN / "v1.json").read_bytes(), (GOLDEN / "v1.bulk.jsonl.gz").read_bytes()
    original = decode(record, bulk)
    assert original.trials[0].samples == (Sample("contract.padded_rows_prefilling", (41.0,)),)
    assert original.trials[1].answers[0].response == "sstwcd"
    assert original.trials[2].client_result == {"completed": 12}
    assert original.trials[3].failure == Failure("engine died", "ERROR: worker died")


@pytest.mark.parametrize("name", ["", "-looks", "-gpu", "-ingested"])
def test_golden_records_of_version_2_say_what_those_of_version_1_say(name: str) -> None:
    older, newer = ((GOLDEN / f"v{n}{name}.json").read_bytes() for n in (1, 2))
    original = decode(newer, None)
    assert original == decode(older, None)
    again = replace(original, trials=with_bulk(original.trials)) if not name else original
    assert encode(again).record == newer


def with_bulk(bare: tuple[Trial, ...]) -> tuple[Trial, ...]:
    """The trials of the golden record with what lies beside it."""
    whole = decode((GOLDEN / "v1.json").read_bytes(), (GOLDEN / "v1.bulk.jsonl.gz").read_bytes())
    assert len(whole.trials) == len(bare)
    return whole.trials


def test_what_ran_is_kept_and_left_out_where_it_is_not_known() -> None:
    known: dict[str, Any] = {
        "changed_files": ("v1/w.py",),
        "revision": "abc",
        "diff_digest": "d" * 64,
    }
    built = tuple(replace(build, code_digest="e" * 64, **known) for build in SMALL.builds)
    encoded = encode(replace(SMALL, builds=built))
    assert decode(encoded.record, encoded.bulk).builds == built
    with pytest.raises(RecordError, match=r"builds\[0\]\.code_digest"):
        decode(encoded.record.replace(b"e" * 64, b"patched"), None)
    older = (GOLDEN / "v1-looks.json").read_bytes()
    for key in ("code_digest", "changed_files", "diff_digest"):
        assert key.encode() not in older + encode(SMALL).record
    assert {build.code_digest for build in decode(older, None).builds} == {None}


def test_reason_of_what_was_not_watched_is_kept_and_names_a_metric_that_we_know() -> None:
    reasons = {"contract.states_off": "Conv: expected two states"}
    first = replace(SMALL.trials[0], unsupported=reasons)
    encoded = encode(replace(SMALL, trials=(first, *SMALL.trials[1:])))
    assert decode(encoded.record, encoded.bulk).trials[0].unsupported == reasons
    assert b"unsupported" not in encode(SMALL).record
    with pytest.raises(RecordError, match="expected the id of a metric"):
        decode(encoded.record.replace(b"contract.states_off", b"unheard-of"), None)


def test_golden_record_of_a_run_of_several_looks_is_still_read() -> None:
    record = (GOLDEN / "v1-looks.json").read_bytes()
    original = decode(record, None)
    assert original.looks == InterimAnalyses((7, 11, 16, 24, 36, 54), (7, 9))
    assert original.trials[0].surroundings == MachineState(0.0083, 0.0085, 0.0351, 2596142000.0)
    assert original.trials[1].surroundings == MachineState(0.0083, 0.0085, None, None)


def test_golden_record_of_a_run_on_a_gpu_is_still_read() -> None:
    record = (GOLDEN / "v1-gpu.json").read_bytes()
    original = decode(record, None)
    assert original.testbed.id == "nvidia-h200-x2-16c-0f1e2d"
    assert original.testbed.gpu_memory_bytes == (150754820096, 150754820096)
    seen, untold = (trial.surroundings for trial in original.trials)
    assert seen is not None
    assert untold is not None
    assert seen.gpus[0].throttled == {"power-cap": 0.75}
    assert seen.gpus[0].others_bytes == 0
    assert untold.gpus == (GpuState(0, 12),)


def test_golden_record_of_an_ingested_run_is_still_read() -> None:
    record = (GOLDEN / "v1-ingested.json").read_bytes()
    original = decode(record, None)
    assert original.source is not None
    assert original.source.format == "asv"
    assert original.source.commit == "d4ad43a03b0c4ab659709e2c5795801bd343588a"
    assert "testbed.cores" in original.source.unknown


def test_what_a_run_does_not_have_leaves_no_key() -> None:
    raw = json.loads(encode(SMALL).record)
    assert "looks" not in raw
    assert "source" not in raw
    assert all("statistic" not in sample for t in raw["trials"] for sample in t["samples"])
    assert all("surroundings" not in trial for trial in raw["trials"])
    assert not [key for key in raw["testbed"] if key.startswith("gpu_")]
    seen = replace(SMALL.trials[0], surroundings=MachineState(0.01, 0.01))
    (trial,) = json.loads(encode(replace(SMALL, trials=(seen,))).record)["trials"]
    assert "gpus" not in trial["surroundings"]


def test_a_start_is_a_key_of_those_trials_alone_that_name_one() -> None:
    one, *rest = SMALL.trials
    assert b'"start"' not in encode(SMALL).record
    named = replace(SMALL, trials=(replace(one, start=0), *rest))
    assert encode(named).record.count(b'"start": 0') == 1
    assert decode(encode(named).record, None).trials[0].start == 0


@pytest.mark.parametrize(
    "change",
    [
        {"second_look": len(SMALL.trials)},
        {"second_look": 0},
        {"second_look": 1, "builds": SMALL.builds[:1]},
        {"second_look": 1, "looks": InterimAnalyses((7,), (7,))},
    ],
    ids=["no such trial", "nothing before it", "one build", "until decided"],
)
def test_a_second_look_that_cannot_have_been_is_never_written(change: Any) -> None:
    assert b'"second_look": 1' in encode(replace(SMALL, second_look=1)).record
    assert b"second_look" not in encode(SMALL).record
    with pytest.raises(RecordError, match="second_look"):
        encode(replace(SMALL, **change))


@pytest.mark.parametrize(
    ("planned", "made"),
    [
        ((), ()),
        ((7, 7), (7,)),
        ((0, 7), ()),
        ((7, 11), (6, 11)),
        ((7, 11), (7, 12)),
        ((7, 11), (7, 11, 16)),
    ],
)
def test_looks_that_cannot_have_been_are_never_written(planned: Any, made: Any) -> None:
    with pytest.raises(RecordError, match="looks"):
        encode(replace(SMALL, looks=InterimAnalyses(planned, made)))


@pytest.mark.parametrize("part", [0.0, 0.001, 0.1, 0.35, 0.5, 0.77, 0.9, 0.999])
def test_record_cut_in_half_is_one_clear_line(part: float) -> None:
    record = encode(SMALL).record.rstrip()
    with pytest.raises(RecordError, match="not whole JSON, the file may have been cut short") as e:
        decode(record[: int(len(record) * part)], None)
    assert "\n" not in str(e.value)


def test_no_cut_is_ever_taken_for_a_record() -> None:
    record = encode(replace(SMALL, trials=SMALL.trials[:1])).record.rstrip()
    for end in range(len(record)):
        with pytest.raises(RecordError):
            decode(record[:end], None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r.update(colour=1), "colour: expected no such key, found 1"),
        (lambda r: r["trials"][0].update(side="0"), r"trials\[0\].side: expected a valid integer"),
        (lambda r: r["trials"][0].update(side=-1), r"trials\[0\].side: expected"),
        (lambda r: r["trials"][1].pop("phase"), r"trials\[1\].phase: expected a value, found noth"),
        (lambda r: r["trials"][1].update(phase="lunch"), r"expected 'contract', .* found 'lunch'"),
        (lambda r: r["trials"][1].update(index=7), r"trials\[1\].index: expected 1, found 7"),
        (lambda r: r["builds"].pop(), r"trials\[1\].side: expected less than the 1 build"),
        (lambda r: r["builds"].clear(), r"builds: .* at least 1 item"),
        (
            lambda r: r["trials"][0]["samples"][0].update(metric="speed"),
            r"trials\[0\].samples\[0\].metric: expected the id of a metric .*, found 'speed'",
        ),
        (
            lambda r: r["trials"][0]["samples"][0].update(values=[math.nan]),
            r"samples\[0\].values\[0\]: expected a finite number, found nan",
        ),
        (lambda r: r.update(started_at="21 November"), "started_at: expected a time in UTC"),
        (lambda r: r.update(started_at="2026-11-21T09:15:00+01:00"), "started_at: expected a time"),
        (lambda r: r.update(started_at="2026-13-41T09:15:00Z"), "started_at: "),
        (lambda r: r["bulk"].update(file="../../etc/passwd"), "bulk.file: expected the plain name"),
        (lambda r: r.update(id="latest"), "id: "),
        (lambda r: r.pop("schema_version") and r.update(schema_version="1"), "schema_version: "),
    ],
)
def test_wrong_record_is_refused_with_path_found_and_expected(change: Any, message: str) -> None:
    with pytest.raises(RecordError, match=message) as e:
        decode(altered(change), None)
    assert "\n" not in str(e.value)


def test_newer_schema_is_named_whatever_else_it_says() -> None:
    newer = json.dumps({"schema_version": SCHEMA_VERSION + 1, "novelty": []}).encode()
    with pytest.raises(RecordError, match=r"schema_version: found 3, .* reads up to 2: upgrade"):
        decode(newer, None)


@pytest.mark.parametrize("raw", [b"[]", b"null", b'"text"', b"3"])
def test_other_json_is_no_record(raw: bytes) -> None:
    with pytest.raises(RecordError, match="expected a JSON object"):
        decode(raw, None)


@pytest.mark.parametrize("raw", [b"\xff\xfe{}", b"[" * 100_000, b"\x00"])
def test_rubbish_is_no_record(raw: bytes) -> None:
    with pytest.raises(RecordError):
        decode(raw, None)


def with_first(**changes: Any) -> Run:
    """The small run with one trial, which is changed."""
    return replace(SMALL, trials=(replace(SMALL.trials[0], **changes),))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        *(
            (
                with_first(samples=(Sample("ttft", (0.1, value)),)),
                r"trials\[0\].samples\[0\].values\[1\]: expected a fin",
            )
            for value in (math.nan, math.inf, -math.inf)
        ),
        (with_first(samples=(Sample("speed", (1.0,)),)), "found 'speed'"),
        (with_first(client_result={"std_ttft_ms": math.nan}), r"trials\[0\].client_result"),
        (with_first(failure=Failure("died", "\ud800")), "lone surrogate"),
        (replace(SMALL, started_at=datetime(2026, 11, 21)), "started_at: expected a time in UTC"),  # noqa: DTZ001
    ],
)
def test_what_is_not_the_truth_is_never_written(bad: Run, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        encode(bad)


def test_other_time_zone_is_written_in_utc() -> None:
    local = STARTED.astimezone(timezone(timedelta(hours=2)))
    record = encode(replace(SMALL, started_at=local)).record
    assert b'"started_at": "2026-11-21T09:15:00Z"' in record


def test_bulk_of_another_run_is_refused() -> None:
    other = encode(run(Plan(seed=8, documents=3, performance_trials=1)))
    with pytest.raises(RecordError, match=r"sha256: expected .*, found "):
        decode(encode(SMALL).record, other.bulk)


def test_bulk_nobody_named_is_refused() -> None:
    with pytest.raises(RecordError, match="expected no file next to this record"):
        decode(encode(replace(SMALL, trials=())).record, b"")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt": "x"}, r"trials\[0\].completions\[0\].prompt"),
        (
            {"tokens": (-1,)},
            r"completions\[0\].tokens\[0\]: expected greater than or equal to 0",
        ),
        ({"logprobs": (-0.5,)}, "expected as many logprobs as tokens, 2, found 1"),
        ({"logprobs": (0.5, -0.5)}, r"completions\[0\].logprobs\[0\]: expected less than or equal"),
        (
            {"logprobs": (math.nan, -0.5)},
            r"completions\[0\].logprobs\[0\]: expected a finite number",
        ),
        ({"close_calls": (CloseCall(0, 7, CLOSE + 1),)}, r"close_calls\[0\]\[2\]"),
    ],
)
def test_completion_that_cannot_be_is_never_written(change: Any, message: str) -> None:
    one = replace(Completion("0" * 8, (1, 2)), **change)
    trial = replace(SMALL.trials[0], completions=(one,))
    with pytest.raises(RecordError, match=message):
        encode(replace(SMALL, trials=(trial, *SMALL.trials[1:])))


RESULT = b'{"trial": 0, "client_result": {}}\n'
COMPLETIONS = b'{"trial":0,"completions":[{"prompt":"00000000","tokens":[]}]}\n'


@pytest.mark.parametrize(
    ("bulk", "lines", "message"),
    [
        (b'{"trial": 99, "client_result": {}}', 1, "line 1: trial: expected less than"),
        (b'{"trial": 0}', 1, "line 1: expected one of answer, client_result, completions"),
        (b'{"trial": 0, "client_result": {}, "x": 1}', 1, "line 1: x: expected no such key"),
        (RESULT * 2, 2, "line 2: client_result: a second one for trial 0"),
        (COMPLETIONS * 2, 2, "line 2: completions: a second list for trial 0"),
        (RESULT, 2, "expected 2 lines, found 1"),
    ],
)
def test_wrong_bulk_is_named(bulk: bytes, lines: int, message: str) -> None:
    zipped = gzip.compress(bulk)
    with pytest.raises(RecordError, match=message):
        decode(naming(zipped, lines), zipped)


def test_bulk_that_is_no_gzip_is_refused() -> None:
    with pytest.raises(RecordError, match="expected gzip"):
        decode(naming(b"plain", 1), b"plain")


def naming(bulk: bytes, lines: int) -> bytes:
    """The small record, its reference changed to fit a bulk made by hand."""
    return altered(lambda r: r["bulk"].update(sha256=hashlib.sha256(bulk).hexdigest(), lines=lines))
