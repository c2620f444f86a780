"""Verdicts, ``results/verdicts/<testbed>/<UTC time>-<scenario>-<run ids>-<digest>.json``; profiles.

The time is the start of the contender's run, the last part the beginning of the verdict's digest:
storing it twice stores it once. The file form, schema version 1, is documented in
``results/README.md``, what is inside ``report`` in ``docs/json.md``.

Profiles of runs are ``results/profiles/<testbed>/<run id>.folded.gz``, stacks of both sides: a line
``SIDE;pass N;FRAME;FRAME SAMPLES`` a stack, root first, a frame as ``function (file:line)``.
flamegraph.pl and speedscope read the text as it is.
"""

import gzip
import hashlib
import json
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field, JsonValue, ValidationError

from hybridwatch.errors import RecordError
from hybridwatch.records.fields import MOST_RECORD_BYTES, Digest
from hybridwatch.records.file_parts import RECORD_SUFFIX, pretty, safe_name
from hybridwatch.records.json_checks import describe_first
from hybridwatch.records.run import Run
from hybridwatch.records.store.layout import find_one, oldest_first
from hybridwatch.records.store.mirror import adding, refreshed
from hybridwatch.records.store.reader import naming, read_file, read_run
from hybridwatch.scenarios.validation import Part
from hybridwatch.system.files import create_all, make_folder, named_errors

VERDICT_SCHEMA: Final = 1

VERDICTS: Final = "verdicts"
_ID: Final = 8
"""Characters of a run's id, and of a digest in a name."""


class SideRef(Part):
    """Where one side of a report was read; paths outside of the results folder are absolute.

    The digest is of the record, which holds that of the file of answers.
    """

    run_id: str
    side: Annotated[int, Field(ge=0)]
    record: str
    sha256: Digest


class StoredVerdict(Part):
    """A report, as ``compare --json`` prints it, with all that it was made from.

    ``parameters`` are the numbers that rules use and no record holds.
    """

    schema_version: Literal[1] = VERDICT_SCHEMA
    baseline: SideRef
    contender: SideRef
    parameters: dict[str, JsonValue]
    tools: dict[str, str]
    report: dict[str, JsonValue]


class _Sealed(StoredVerdict):
    sha256: Digest


def encode_verdict(verdict: StoredVerdict) -> tuple[bytes, str]:
    """Give the file form of a verdict, UTF-8 JSON, and its digest; equal ones give equal bytes."""
    content = verdict.model_dump(mode="json")
    digest = _compute_digest(content)
    return f"{pretty({**content, 'sha256': digest})}\n".encode(), digest


def decode_verdict(raw: bytes) -> tuple[StoredVerdict, bool]:
    """Read a verdict back, and say whether it is still as it was written."""
    content = _parse_object(raw)
    if "trials" in content:
        raise RecordError("not a stored verdict but a record")
    version = content.get("schema_version")
    if isinstance(version, int) and version > VERDICT_SCHEMA:
        raise RecordError(
            f"schema_version: found {version}, but this hybridwatch reads up to "
            f"{VERDICT_SCHEMA}: upgrade hybridwatch"
        )
    try:
        sealed = _Sealed.model_validate(content)
    except ValidationError as error:
        raise RecordError(f"not a stored verdict: {describe_first(error)}") from error
    rest = {key: value for key, value in content.items() if key != "sha256"}
    verdict = StoredVerdict.model_validate(rest)
    return verdict, sealed.sha256 == _compute_digest(rest)


def _parse_object(raw: bytes) -> dict[str, Any]:
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not a stored verdict: expected JSON: {error}") from error
    if not isinstance(content, dict):
        raise RecordError(
            f"not a stored verdict: expected a JSON object, found {type(content).__name__}"
        )
    return content


def _compute_digest(content: Mapping[str, Any]) -> str:
    # How the file is laid out does not count, what it says does.
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def refer(results: Path, record: Path, run_id: str, side: int) -> SideRef:
    """Say where a side was read, relative to the results folder where it lies in it."""
    whole, folder = record.resolve(), results.resolve()
    named = whole.relative_to(folder) if whole.is_relative_to(folder) else whole
    return SideRef(run_id=run_id, side=side, record=named.as_posix(), sha256=_digest(record))


def write_verdict(results: Path, verdict: StoredVerdict, contender: Run) -> Path:
    """Add a verdict on the contender's run, unless it is there, and give its path."""
    content, digest = encode_verdict(verdict)
    folder = results / VERDICTS / safe_name(contender.testbed.id)
    path = folder / f"{_stem(verdict, contender)}-{digest[:_ID]}{RECORD_SUFFIX}"
    make_folder(folder)
    try:
        with adding(results, [path]):
            create_all([(path, content)], [])
    except FileExistsError as error:
        if read_file(path, MOST_RECORD_BYTES) != content:
            raise RecordError(f"{path}: is there already and says something else") from error
    except OSError as error:
        raise RecordError(f"{path}: cannot be written: {error.strerror or error}") from error
    return path


def list_verdicts(results: Path) -> list[Path]:
    """List the verdicts of a store, those on the oldest runs first."""
    paths = (refreshed(results) / VERDICTS).glob(f"*/*{RECORD_SUFFIX}")
    return oldest_first(paths)


def _answers_to(path: Path, key: str) -> bool:
    words = path.stem.split("-")[-3:]  # one run id or two, and the digest
    return any(len(word) == _ID and word.startswith(key) for word in words)


def find_verdict(results: Path, key: str) -> Path:
    """Find the verdict of a path, the beginning of its digest or of a run's id, or ``latest``."""
    return find_one(
        results,
        key,
        list_verdicts(results),
        noun="verdict",
        fits=_answers_to,
        expected="a stored verdict on a run whose id begins with {}",
        remedy=": `hybridwatch compare --save` stores one",
        narrower="one of their last words",
    )


def read_verdict(path: Path) -> tuple[StoredVerdict, bool]:
    """Read a stored verdict, and say whether it is still as it was written."""
    with naming(path):
        return decode_verdict(read_file(path, MOST_RECORD_BYTES))


def find_results(verdict: Path, otherwise: Path) -> Path:
    """Name the results folder that a verdict's file lies in, or the one given if in none."""
    folder = verdict.resolve().parent.parent
    return folder.parent if folder.name == VERDICTS else otherwise


@dataclass(frozen=True, slots=True)
class StoredSide:
    """A side that a verdict names, read again with its answers.

    ``as_judged`` is whether the record is still what the verdict was made from.
    """

    record: Path
    run: Run
    index: int
    as_judged: bool


def read_side(results: Path, reference: SideRef) -> StoredSide:
    """Read the run that a verdict names."""
    path = results / reference.record
    if not path.is_file():
        raise RecordError(
            f"{path}: the record of run {reference.run_id} is not there, and without it the "
            "verdict cannot be had again: bring it back, with the file of answers next to it, or "
            "name the folder that has it with --results"
        )
    run = read_run(path)
    if run.id != reference.run_id:
        raise RecordError(f"{path}: expected run {reference.run_id}, found run {run.id}")
    return StoredSide(path, run, reference.side, _digest(path) == reference.sha256)


def _stem(verdict: StoredVerdict, contender: Run) -> str:
    started = contender.started_at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    runs = dict.fromkeys((verdict.baseline.run_id, verdict.contender.run_id))
    return "-".join([started, safe_name(contender.scenario.id), *runs])


def _digest(path: Path) -> str:
    with naming(path):
        return hashlib.sha256(read_file(path, MOST_RECORD_BYTES)).hexdigest()


PROFILES: Final = "profiles"
PROFILE_SUFFIX: Final = ".folded.gz"
Passes: TypeAlias = Sequence[Mapping[tuple[str, ...], int]]
"""The samples of each stack of a side, for each pass of the load."""

_SIDES: Final = ("baseline", "contender")
_LINE: Final = re.compile(r"(baseline|contender);pass ([1-9]\d?);(.+) (\d{1,9})\n")
_MOST_BYTES: Final = 32 * 2**20
"""Of the text. Twelve passes of the smoke load have some 9 MB."""


def find_profile(results: Path, testbed: str, run_id: str) -> Path:
    """Name the file of a run's profile, whether it is there or not."""
    return results / PROFILES / safe_name(testbed) / f"{safe_name(run_id)}{PROFILE_SUFFIX}"


def write_profile(path: Path, results: Path, sides: Sequence[Passes]) -> None:
    """Store the stacks of both sides at ``find_profile``; what is there already stays."""
    text = "".join(
        f"{side};pass {number};{';'.join(stack)} {samples}\n"
        for side, passes in zip(_SIDES, sides, strict=True)
        for number, stacks in enumerate(passes, start=1)
        for stack, samples in sorted(stacks.items())
    )
    make_folder(path.parent)
    with named_errors(path), adding(results, [path]):
        create_all([(path, gzip.compress(text.encode(), mtime=0))], [])


def read_profile(path: Path) -> tuple[Passes, Passes] | None:
    """Read the stacks of baseline and contender; ``None`` where there is no profile."""
    try:
        with gzip.open(path) as file:
            return _parse(file.read(_MOST_BYTES + 1))
    except FileNotFoundError:
        return None
    except (RecordError, OSError, EOFError, ValueError, zlib.error) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from error


def _parse(text: bytes) -> tuple[Passes, Passes]:
    if len(text) > _MOST_BYTES:
        raise RecordError(f"expected at most {_MOST_BYTES} bytes of text")
    found: dict[str, dict[int, Counter[tuple[str, ...]]]] = {side: {} for side in _SIDES}
    for at, line in enumerate(text.decode().splitlines(keepends=True), start=1):
        if (read := _LINE.fullmatch(line)) is None:
            raise RecordError(f"line {at}: expected SIDE;pass N;FRAME;... SAMPLES, found {line!r}")
        side, number, stack, samples = read.groups()
        found[side].setdefault(int(number), Counter())[tuple(stack.split(";"))] += int(samples)
    baseline, contender = ([passes[n] for n in sorted(passes)] for passes in found.values())
    return baseline, contender
