"""A JSON file from outside, read key by key, and a run of ours from it, with nothing made up.

Errors name the key. A record has fields that no foreign file has: they hold ``unknown`` or 0, and
``source.unknown`` names each of them.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Final

from hybridwatch.errors import IngestError
from hybridwatch.metrics import find_metric
from hybridwatch.records.identity import EngineBuild, Harness, ScenarioRef, Testbed
from hybridwatch.records.json_checks import check_json_size
from hybridwatch.records.run import UNKNOWN, Failure, Phase, Run, Sample, Source, Trial

_DEEPEST: Final = 64
"""Levels of nesting: no tool writes a third of them, and no record can be read with thousands."""
_MOST_VALUES: Final = 10_000_000
_MOST_PARTS: Final = 4_000_000
"""Lists, objects and keys, which take up to a hundred times their bytes in memory."""
_MOST_LINES: Final = 1_000_000
_SHOWN: Final = 60
"""How much of a wrong value an error message repeats."""
LIKELY: Final = (".json", ".jsonl")
LARGEST_COMPANION: Final = 64 * 1024**2
_FOLDERS: Final = 256
"""Folders whose parsed files are kept: each file in one asks for its neighbours."""


@dataclass(frozen=True, slots=True)
class DocumentNode:
    """A value inside a document, as ``json`` reads it, and its path: ``benchmarks[0].metrics``.

    NaN is ``None``, since no record knows it; the path of the whole is empty.
    """

    value: Any
    path: str = ""

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, dict) and self.value.get(key) is not None

    def has(self, *keys: str) -> bool:
        """Whether this is an object with a value under each of these keys."""
        return all(key in self for key in keys)

    def at(self, *keys: str) -> "DocumentNode":
        """Go down by keys."""
        node = self
        for key in keys:
            if not isinstance(node.value, dict):
                raise node.wrong("an object")
            path = f"{node.path}.{key}".lstrip(".")
            if key not in node.value:
                raise IngestError(f"{path}: expected a value, found nothing")
            node = DocumentNode(node.value[key], path)
        return node

    def items(self) -> Iterator[tuple[str, "DocumentNode"]]:
        """Yield keys and values of an object."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        for key in self.value:
            yield key, self.at(key)

    def each(self) -> Iterator["DocumentNode"]:
        """Yield the items of a list."""
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        for place, item in enumerate(self.value):
            yield DocumentNode(item, f"{self.path}[{place}]")

    def first(self, noun: str) -> "DocumentNode":
        """Give the first item of a list; ``noun`` is what one is, for a message."""
        for item in self.each():
            return item
        raise self.wrong(f"at least one {noun}")

    def number(self) -> float:
        """Give a finite number."""
        is_number = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        try:
            number = float(self.value) if is_number else math.nan
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.wrong("a finite number")
        return number

    def numbers(self) -> tuple[float, ...]:
        """Give a list of finite numbers."""
        return tuple(item.number() for item in self.each())

    def amount(self) -> float:
        """Give a time, a rate or a count: a finite number that is not negative."""
        number = self.number()
        if number < 0:
            raise self.wrong("a number of at least 0")
        return number

    def amounts(self) -> tuple[float, ...]:
        """Give a list of such numbers."""
        return tuple(item.amount() for item in self.each())

    def count(self) -> int:
        """Give a whole number that is not negative."""
        number = self.amount()
        if not number.is_integer():
            raise self.wrong("a whole number")
        return int(number)

    def text(self) -> str:
        """Give a text."""
        if not isinstance(self.value, str):
            raise self.wrong("a text")
        return self.value

    def moment(self, parts: int = 1) -> datetime:
        """Give a time, UTC, from parts of a second since 1970."""
        seconds = self.number() / parts
        try:
            return datetime.fromtimestamp(seconds, tz=UTC)
        except (OverflowError, ValueError, OSError):
            raise self.wrong("a time") from None

    def date(self, example: str) -> datetime:
        """Give a time from a text such as ``example``; where that names no zone it is UTC."""
        try:
            moment = datetime.fromisoformat(self.text())
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except (OverflowError, ValueError):
            raise self.wrong(f"a date such as {example}") from None

    def wrong(self, wanted: str) -> IngestError:
        """Say what was expected here, and what is here instead."""
        text = repr(self.value)
        shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
        prefix = f"{self.path}: " if self.path else ""
        return IngestError(f"{prefix}expected {wanted}, found {shown}")


@dataclass(frozen=True)
class ForeignDocument:
    """A file of JSON, or JSON lines: where there are several nodes, paths begin with the line."""

    path: Path
    raw: bytes
    nodes: tuple[DocumentNode, ...]

    @property
    def root(self) -> DocumentNode:
        """The only value; nothing where there are several."""
        return self.nodes[0] if len(self.nodes) == 1 else DocumentNode(None)

    @property
    def rows(self) -> Iterator[DocumentNode]:
        """Every value, and for a list its items."""
        for node in self.nodes:
            yield from node.each() if isinstance(node.value, list) else (node,)

    @property
    def first(self) -> DocumentNode:
        """The first of ``rows``; nothing where there is none."""
        return next(self.rows, DocumentNode(None))

    @cached_property
    def sha256(self) -> str:
        """Digest of the bytes."""
        return hashlib.sha256(self.raw).hexdigest()

    @property
    def written_at(self) -> datetime:
        """When the file was written last, UTC: all there is for a run whose file has no time."""
        return datetime.fromtimestamp(int(self.path.stat().st_mtime), tz=UTC)


def parse(path: Path, raw: bytes) -> ForeignDocument:
    """Read JSON or JSON lines; the message of an ``IngestError`` names the line."""
    try:
        text = raw.decode("utf-8-sig")
        check_json_size(raw, _MOST_VALUES, _MOST_PARTS)
    except UnicodeDecodeError as error:
        raise IngestError(f"expected text in UTF-8: {error.reason}") from error
    except ValueError as error:
        raise IngestError(str(error)) from error
    try:
        return ForeignDocument(path, raw, (DocumentNode(_loads(text)),))
    except IngestError:
        if raw.count(b"\n") > _MOST_LINES:
            raise
        lines = [line for line in text.split("\n") if line.strip()]
        if len(lines) < 2 or not _is_json(lines[0]):
            raise
    nodes = []
    for number, line in enumerate(lines, start=1):
        try:
            nodes.append(DocumentNode(_loads(line), f"line {number}"))
        except IngestError as error:
            raise IngestError(f"line {number}: {error}") from error
    return ForeignDocument(path, raw, tuple(nodes))


@lru_cache(maxsize=_FOLDERS)
def read_folder(folder: Path) -> Sequence[ForeignDocument]:
    """Read what is named like JSON; what cannot be read is reported when it is ingested itself."""
    return tuple(_parsed(path for path in sorted(folder.iterdir()) if path.suffix in LIKELY))


def _parsed(paths: Iterable[Path]) -> Iterator[ForeignDocument]:
    for path in paths:
        try:
            if path.is_file() and path.stat().st_size <= LARGEST_COMPANION:
                yield parse(path, path.read_bytes())
        except (OSError, IngestError):
            continue


def _is_json(text: str) -> bool:
    try:
        _loads(text)
    except IngestError:
        return False
    return True


def _loads(text: str) -> Any:
    try:
        # Infinity, too: asv writes it for an interval of nothing.
        value = json.loads(text, parse_constant=lambda _: None)
        _check_depth([value])
    except RecursionError as error:
        raise IngestError(f"expected JSON of at most {_DEEPEST} levels: {error}") from error
    except ValueError as error:
        wanted = "expected JSON, the file may have been cut short"
        raise IngestError(f"{wanted}: {error}") from error
    return value


def _check_depth(level: list[Any]) -> None:
    for _ in range(_DEEPEST + 2):
        items = (one.values() if isinstance(one, dict) else one for one in level)
        level = [item for inner in items for item in inner if isinstance(item, dict | list)]
        if not level:
            return
    raise RecursionError(f"nested deeper than {_DEEPEST} levels")


_ID: Final = 8
_SHORT: Final = 100
"""Characters of a setting that is worth a word; a prompt is not."""
_SETTINGS: Final = 100
_ANY_NUMBER: Final = ("asv_number.", "asv_ratio.")
_SNAPSHOT: Final = re.compile(r"models--([\w.-]+)(?:/snapshots/(\w+))?")
"""Where the hub's cache keeps a model: ``models--org--name/snapshots/COMMIT``."""
_COPIED: Final = re.compile(r"(?:^|/)(?!datasets--)([\w.-]+)/snapshots/([0-9a-f]{7,64})/*$")
"""A snapshot elsewhere: ``/data/name/snapshots/COMMIT``."""


@dataclass(frozen=True, slots=True)
class ForeignInput:
    """What the person who ingests knows and the file does not say."""

    testbed: str | None = None
    build: str | None = None
    scenario: str | None = None
    line: str | None = None


@dataclass(frozen=True, slots=True)
class ForeignRun:
    """What a foreign file says of one run.

    Attributes:
        scenario: A name for the workload; it ends in ``/unknown`` where the file names no model.
        workload: What the engine had to do, as plain JSON: runs are comparable when this is equal.
        model_revision: Commit of a model of the hub; else that of the snapshot in ``scenario``.
        unknown: Fields besides the usual ones that the file lacks. ``scenario.digest`` is one where
            ``workload`` does not have the model.
    """

    tool: str
    scenario: str
    workload: Any
    started_at: datetime
    finished_at: datetime
    trials: Sequence[Trial]
    model_revision: str | None = None
    build: str | None = None
    release: str | None = None
    revision: str | None = None
    testbed: Testbed | None = None
    unknown: tuple[str, ...] = ()
    commit: str | None = None
    committed_at: datetime | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)


def build_trial(at: datetime, seconds: float, found: Iterable[Sample] | Failure) -> Trial:
    """Make a timed trial of its samples, or of why there are none."""
    trial = Trial(0, 0, Phase.PERFORMANCE, at, seconds)
    if isinstance(found, Failure):
        return replace(trial, failure=found)
    return replace(trial, samples=tuple(found))


Passes = Sequence[tuple[float, Iterable[Sample] | Failure]]
"""Of each trial the seconds, and the samples or why there are none."""


def build_untimed(
    document: ForeignDocument, tool: str, workload: Any, passes: Passes, name: str | None = None
) -> ForeignRun:
    """Make a run of a file without a time: its trials end when it was written, one after another.

    ``workload`` has the ``model``, ``unknown`` where no file names it; else ``name`` is that of the
    scenario.
    """
    at = document.written_at - timedelta(seconds=sum(seconds for seconds, _ in passes))
    started, trials = at, []
    for seconds, found in passes:
        trials.append(build_trial(at, seconds, found))
        at += timedelta(seconds=seconds)
    lacks_load = name is not None or workload["model"] == UNKNOWN
    return ForeignRun(
        tool=tool,
        scenario=name or f"{tool}/{workload['model']}",
        workload=workload,
        started_at=started,
        finished_at=document.written_at,
        trials=trials,
        unknown=(
            *("harness.version", "started_at", "finished_at"),
            *(("scenario.digest",) if lacks_load else ()),
        ),
    )


def build_run(
    document: ForeignDocument, form: str, foreign_run: ForeignRun, given: ForeignInput
) -> Run:
    """Make the run; the same file with the same words given always makes the same one.

    What the user says (``given``) goes before what the file says. Where neither names the model, no
    other file's run is comparable.
    """
    _check_amounts(foreign_run.trials)
    build, unknown = _build(foreign_run, given)
    unknown += foreign_run.unknown
    if foreign_run.scenario.endswith(f"/{UNKNOWN}"):
        unknown.append("scenario.digest")
    testbed = foreign_run.testbed or bare_testbed(UNKNOWN)
    if given.testbed is not None:
        testbed = replace(testbed, id=given.testbed)
    unknown += _untold(testbed)
    scenario = given.scenario or _on_hub(foreign_run.scenario)
    load = foreign_run.workload
    if "scenario.digest" in unknown and not given.scenario:
        load = {**(load or {}), "file": document.sha256}
    workload = _on_hub(_text(load))
    digest = hashlib.sha256(workload.encode()).hexdigest()
    return Run(
        id=hashlib.sha256(
            _text([document.sha256, scenario, digest, build.label, testbed.id]).encode()
        ).hexdigest()[:_ID],
        started_at=foreign_run.started_at,
        finished_at=foreign_run.finished_at,
        harness=Harness(foreign_run.tool, foreign_run.revision),
        scenario=ScenarioRef(scenario, 1, digest, UNKNOWN, build_settings(json.loads(workload))),
        testbed=testbed,
        builds=(build,),
        trials=tuple(replace(trial, index=place) for place, trial in enumerate(foreign_run.trials)),
        source=Source(
            format=form,
            file=document.path.name,
            sha256=document.sha256,
            unknown=tuple(sorted({*unknown, "scenario.fix"})),
            commit=foreign_run.commit,
            committed_at=foreign_run.committed_at,
            left_out=foreign_run.left_out,
        ),
    )


def _check_amounts(trials: Sequence[Trial]) -> None:
    """Refuse negative values, which every reader should have found by its key."""
    for place, trial in enumerate(trials):
        for sample in trial.samples:
            # What a benchmark of asv tracks in no unit of ours may be anything.
            if sample.metric.startswith(_ANY_NUMBER):
                continue
            worst = min(sample.values, default=0.0)
            if worst < 0:
                raise IngestError(
                    f"{sample.metric} of trial {place}: expected numbers of at least 0, "
                    f"found {worst:g}"
                )


def build_settings(workload: Any) -> dict[str, str]:
    """Name what a workload consists of, part by part, as far as it is short."""
    parts = dict(_parts(workload, "")) if isinstance(workload, dict) else {}
    brief = (name for name, text in parts.items() if 0 < len(text) <= _SHORT and text.isprintable())
    return {name: parts[name] for name in islice(brief, _SETTINGS)}


def _parts(workload: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(workload, list) and len(_text(workload)) > _SHORT:
        workload = dict(enumerate(workload))
    if isinstance(workload, dict):
        for key, part in workload.items():
            yield from _parts(part, f"{place}.{key}" if place else str(key))
    elif workload is not None:
        yield place, workload if isinstance(workload, str) else _text(workload)


def short(name: str) -> str:
    """Give a model's name without a machine's folders; a snapshot of the hub stays one here."""
    if snapshot := _SNAPSHOT.search(name):
        return snapshot[0]
    if copied := _COPIED.search(name):
        return f"models--{copied[1]}/snapshots/{copied[2]}"
    return name.rstrip("/").rpartition("/")[2] if name.startswith(("/", ".", "~")) else name


def model_name(node: DocumentNode) -> str:
    """Give the model that a text names; ``unknown`` for an empty one."""
    return short(node.text().strip()) or UNKNOWN


def _on_hub(text: str) -> str:
    """Call models in the cache of the hub what they are called there, whatever their snapshot."""
    return _SNAPSHOT.sub(lambda found: found[1].replace("--", "/"), text)


def _build(foreign_run: ForeignRun, given: ForeignInput) -> tuple[EngineBuild, list[str]]:
    label = given.build or foreign_run.build or UNKNOWN
    release = foreign_run.release or UNKNOWN
    snapshot = _SNAPSHOT.search(foreign_run.scenario)
    revision = foreign_run.model_revision or (snapshot[2] if snapshot else None)
    build = EngineBuild(
        label=label,
        name=label,
        release=release,
        accelerator=UNKNOWN,
        distribution=UNKNOWN,
        lock_digest=UNKNOWN,
        wheel_digest=UNKNOWN,
        fixes={},
        flags={"model_revision": revision} if revision else {},
        line=given.line,
    )
    names = ("label", "release", "accelerator", "distribution", "lock_digest", "wheel_digest")
    unknown = [f"builds[0].{name}" for name in names if getattr(build, name) == UNKNOWN]
    return build, [*unknown, "builds[0].fixes", "builds[0].flags"]


def is_metric(name: str, unit: str) -> bool:
    """Whether a name is that of a metric of ours, in its unit."""
    try:
        return find_metric(name).unit.value == unit
    except KeyError:
        return False


def bare_testbed(name: str) -> Testbed:
    """Give a machine of which nothing but the name is known."""
    return Testbed(id=name, cpu_model=UNKNOWN, cores=0, memory_bytes=0, kernel=UNKNOWN)


def _untold(testbed: Testbed) -> list[str]:
    facts = ("id", "cpu_model", "cores", "memory_bytes", "kernel")
    return [
        *(f"testbed.{name}" for name in facts if getattr(testbed, name) in {UNKNOWN, 0}),
        "testbed.gpus",
        "testbed.driver",
        "testbed.cuda",
    ]


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
