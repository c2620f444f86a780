"""A run of ours from a file of another tool, with nothing made up.

A record has fields that no foreign file has: they hold ``unknown`` or 0, and ``source.unknown``
names each of them.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

from hybridwatch.errors import IngestError
from hybridwatch.formats.read.document import DocumentNode, ForeignDocument
from hybridwatch.metrics import find_metric
from hybridwatch.records.identity import EngineBuild, Harness, ScenarioRef, Testbed
from hybridwatch.records.run import UNKNOWN, Failure, Phase, Run, Sample, Source, Trial

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
    unknown += _list_unknown(testbed)
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


def _list_unknown(testbed: Testbed) -> list[str]:
    facts = ("id", "cpu_model", "cores", "memory_bytes", "kernel")
    return [
        *(f"testbed.{name}" for name in facts if getattr(testbed, name) in {UNKNOWN, 0}),
        "testbed.gpus",
        "testbed.driver",
        "testbed.cuda",
    ]


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
