"""Mutated records: none is taken with other data than its digest says, and none is a traceback.

Damage leaves the digest as it was, and must be refused. Hostility makes the digest again, so what
is taken is what the digest says; every reader must then have an answer.
"""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from hybridwatch.database.queries import open_index
from hybridwatch.errors import RecordError
from hybridwatch.records.codec import Encoded, decode, encode
from hybridwatch.records.file_parts import render_sealed
from hybridwatch.records.run import GpuState, InterimAnalyses, MachineState, Run
from hybridwatch.records.store import list_records, read_run
from tests.command_line import run_verb
from tests.store_builders import REGRESSED, Plan, run

ROOT: Final = Path(__file__).parents[3]
RESULTS: Final = ROOT / "results"
MANY: Final = 1000

GPU = GpuState(0, 9, 1.5e9, 2.6e9, 410.0, 61.0, 0.8, {"power-cap": 0.5}, 2**20)
SMALL = run(Plan(documents=3, performance_trials=2, failed_trials=1))
BASES: Final = (
    SMALL,
    replace(
        SMALL,
        looks=InterimAnalyses((2, 4), (2,)),
        trials=tuple(
            replace(trial, surroundings=MachineState(0.01, 0.02, 0.1, 2.5e9, (GPU,)))
            for trial in SMALL.trials
        ),
    ),
    run(replace(REGRESSED, documents=8, performance_trials=3)),
    replace(SMALL, second_look=2),
)

HOSTILE_TEXTS: Final = (
    *("NaN", "Infinity", "-Infinity", "1e999", "1e308", "5e-324", "-0.0", "-1", "0", "2147483648"),
    *("9223372036854775808", "1" + 30 * "0", "9" * 400, "9" * 5000, "null", "true", "[]", "{}"),
    *('""', '"\\u0000"', '"\\ud800"', '"0001-01-01T00:00:00Z"', '"9999-12-31T23:59:59Z"'),
    *('"' + 5000 * "x" + '"', "[[[[1]]]]", '{"a": 1}', '"../../etc/passwd"', '"=1+1"'),
)
HOSTILE_VALUES: Final[tuple[Any, ...]] = (
    *(1e308, -1e308, 5e-324, 1e30, 1e-30, -1.0, 0, -1, 2**31, 2**63, 10**30, 10**400, None, True),
    *([], {}, "", "\0", "x" * 5000, "\x1b[31m", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"),
    *("1970-01-01T00:00:00Z", [1e30, -1e30], [0.0] * 200, "../../etc/passwd", "a\nb", 2**31 - 1),
)


def flipped(raw: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(raw)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        damaged[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def overwritten(raw: bytes, rng: random.Random) -> bytes:
    at, more = rng.randrange(len(raw)), rng.randrange(1, 20)
    return raw[:at] + rng.randbytes(more) + raw[at + more :]


def cut(raw: bytes, rng: random.Random) -> bytes:
    return raw[: rng.randrange(len(raw))]


def without_a_part(raw: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(raw))
    return raw[:at] + raw[at + rng.randrange(1, 40) :]


def without_a_line(raw: bytes, rng: random.Random) -> bytes:
    lines = raw.splitlines(keepends=True)
    del lines[rng.randrange(len(lines))]
    return b"".join(lines)


def with_a_line_twice(raw: bytes, rng: random.Random) -> bytes:
    lines = raw.splitlines(keepends=True)
    lines.insert(rng.randrange(len(lines)), rng.choice(lines))
    return b"".join(lines)


def with_another_value(raw: bytes, rng: random.Random) -> bytes:
    """Put something hostile where a value stands, in the text."""
    places = [at for at in range(len(raw) - 1) if raw[at : at + 2] in {b": ", b", "}]
    at = rng.choice(places) + 2
    end = min((raw.find(mark, at) for mark in b",]}\n" if raw.find(mark, at) > 0), default=at)
    return raw[:at] + rng.choice(HOSTILE_TEXTS).encode() + raw[end:]


def with_another_digit(raw: bytes, rng: random.Random) -> bytes:
    at = rng.choice([at for at, char in enumerate(raw) if chr(char).isdigit()])
    return raw[:at] + str(rng.randrange(10)).encode() + raw[at + 1 :]


def as_version_1(raw: bytes, rng: random.Random) -> bytes:
    damaged = raw.replace(b'"schema_version": 2', b'"schema_version": 1')
    return with_another_digit(damaged, rng) if rng.random() < 0.5 else damaged


def laid_out_anew(raw: bytes, rng: random.Random) -> bytes:
    return json.dumps(json.loads(raw), indent=rng.choice((None, 1, 2))).encode()


VERBS: Final = (
    ("compare",),
    ("compare", "--json"),
    ("gate",),
    ("comment", "--dry-run"),
    ("export", "--to", "csv"),
    ("export", "--to", "hud"),
)

DAMAGES: Final[tuple[Callable[[bytes, random.Random], bytes], ...]] = (
    flipped,
    overwritten,
    cut,
    without_a_part,
    without_a_line,
    with_a_line_twice,
    with_another_value,
    with_another_digit,
    as_version_1,
    laid_out_anew,
)


def refusal(read: Callable[..., Run], *words: Any) -> str | None:
    """Why a record is not taken; ``None`` when it is."""
    try:
        read(*words)
    except RecordError as error:
        told = str(error)
        assert told.isprintable(), told
        assert 0 < len(told) < 600, told
        return told
    return None


def check_damaged(bases: list[Encoded], many: int) -> None:
    rng = random.Random(17)
    for number in range(many):
        base, damage = rng.choice(bases), DAMAGES[number % len(DAMAGES)]
        raw = damage(base.record, rng)
        if raw != base.record:  # a digit may be replaced by itself
            assert refusal(decode, raw, None), (number, damage.__name__)


def test_of_a_thousand_damaged_records_none_is_taken() -> None:
    check_damaged([encode(base) for base in BASES], MANY)


@pytest.mark.slow
def test_of_a_thousand_damaged_records_of_ours_none_is_taken() -> None:
    check_damaged([encode(read_run(path)) for path in list_records(RESULTS)], MANY)


def test_no_damaged_bulk_is_taken() -> None:
    rng, (base, *_) = random.Random(18), map(encode, BASES)
    assert base.bulk is not None
    for damage in (flipped, overwritten, cut, without_a_part):
        for _ in range(50):
            bulk = damage(base.bulk, rng)
            if bulk != base.bulk:
                assert refusal(decode, base.record, bulk), damage.__name__


def hostile(base: Encoded, rng: random.Random) -> bytes | None:
    """A record with something hostile inside and a digest that is right, or cannot be written."""
    raw = json.loads(base.record)
    for _ in range(rng.choice((1, 1, 2))):
        holder, key = rng.choice(list(places(raw)))
        holder[key] = rng.choice(HOSTILE_VALUES)
    try:
        return render_sealed(raw).encode()
    except ValueError:  # a lone surrogate
        return None


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


def check_hostile(results: Path, many: int) -> tuple[int, int]:
    """Put hostile records into a store and read them all; gives how many were taken, and not."""
    rng, bases = random.Random(19), [encode(base) for base in BASES]
    folder = results / "records" / "x"
    folder.mkdir(parents=True)
    taken = 0
    for number in range(many):
        base = rng.choice(bases)
        raw = hostile(base, rng)
        if raw is None:
            continue
        path = folder / f"20261121T091500Z-x-{number:08x}.json"
        path.write_bytes(raw)
        assert base.bulk is not None
        (folder / f"{base.stem}.bulk.jsonl.gz").write_bytes(base.bulk)
        if refusal(read_run, path) is None:
            taken += 1
            check_judged(path, json.loads(raw)["sha256"], rng.choice(VERBS))
    index = open_index(results)
    assert index.counts["broken"] == len(list_records(results)) - taken
    return taken, index.counts["broken"]


def check_judged(path: Path, stated: str, words: tuple[str, ...]) -> None:
    """Check that what was taken is what the digest says, and that a verb has an answer."""
    taken = read_run(path)
    assert taken.sha256 == stated
    assert decode(encode(taken).record, encode(taken).bulk) == taken
    answer = run_verb(*words, path, "--results", path.parents[2])
    assert answer.exception is None or isinstance(answer.exception, SystemExit), answer
    assert answer.exit_code in {0, 1} or answer.stderr.count("\n") == 1, answer.stderr


def test_hostile_records_are_refused_or_have_an_answer(tmp_path: Path) -> None:
    taken, refused = check_hostile(tmp_path, 100)
    assert taken > 10
    assert refused > 20


@pytest.mark.slow
def test_a_thousand_hostile_records_are_refused_or_have_an_answer(tmp_path: Path) -> None:
    taken, refused = check_hostile(tmp_path, MANY)
    assert taken > 100
    assert refused > 250
