"""``hybridwatch ingest``: records from elsewhere, and what other tools measured, into the store."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import click

from hybridwatch.cli.options import examples, takes_results
from hybridwatch.cli.say import say
from hybridwatch.errors import IngestError, RecordError
from hybridwatch.ingest.agreement import check_record
from hybridwatch.ingest.document import Document, parse
from hybridwatch.ingest.foreign import Given
from hybridwatch.ingest.read import candidates, is_companion, read_foreign
from hybridwatch.record.codec import Encoded, decode_with, encode
from hybridwatch.record.naming import BULK_SUFFIX, stem_of
from hybridwatch.record.run import Run
from hybridwatch.store import Intake

_BAD_NEWS: Final = 1
_OWN_WORDS: Final = (b'"schema_version"', b'"builds"', b'"trials"')
"""In every record; a quick look that spares reading its JSON twice."""
_VERDICT_KEYS: Final = frozenset({"report", "parameters", "tools"})


@dataclass(frozen=True, slots=True)
class Taken:
    """A run that is in the store now.

    Attributes:
        file: Where it was read.
        format: ``record``, or as ``Source.format``.
        run_id: Its id.
        record: Its record in the store.
        new: Whether it was not there before.
    """

    file: str
    format: str
    run_id: str
    record: str
    new: bool


@dataclass(frozen=True, slots=True)
class Bad:
    """A file that was not taken, and why, in one line."""

    file: str
    reason: str


@dataclass(slots=True)
class Haul:
    """What became of every file, told as it is known.

    Attributes:
        intake: Where the records go.
        quiet: Whether to tell nothing yet.
        taken: Runs that are in the store.
        bad: Files that were not taken, wholly or in part.
    """

    intake: Intake
    quiet: bool
    taken: list[Taken] = field(default_factory=list)
    bad: list[Bad] = field(default_factory=list)
    _waiting: list[Taken] = field(default_factory=list)

    def wait(self, taken: Taken) -> None:
        """Note a run that is to be written."""
        self._waiting.append(taken)
        if self.intake.is_full:
            self.write()

    def write(self) -> None:
        """Write the runs that wait, and tell what became of them."""
        failed = self.intake.write()
        waiting, self._waiting = self._waiting, []
        for taken in waiting:
            if taken.run_id in failed:
                self.refuse(taken.file, failed[taken.run_id])
                continue
            self.taken.append(taken)
            if not self.quiet:
                what = "added" if taken.new else "already there"
                say(f"{taken.file}: {taken.format}: {what}: {taken.record}")

    def refuse(self, file: str, reason: str) -> None:
        """Note a file that cannot be taken."""
        self.bad.append(Bad(file, reason))
        if not self.quiet:
            say(f"{file}: {reason}", err=True)

    @property
    def summary(self) -> str:
        """How many of each."""
        added = sum(taken.new for taken in self.taken)
        there = len(self.taken) - added
        return f"{added} added, {there} already there, {len(self.bad)} not taken"

    def to_json(self) -> dict[str, Any]:
        """As docs/json.md has it."""
        return {
            "schema_version": 1,
            "taken": [asdict(taken) for taken in self.taken],
            "bad": [asdict(bad) for bad in self.bad],
        }


@click.command(
    "ingest",
    epilog=examples(
        "hybridwatch ingest results.json --testbed my-machine --build cpu-0.27.1",
    ),
)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE|FOLDER..."
)
@takes_results("Folder that the records are added to.")
@click.option("--testbed", help="Id of the machine, where a file does not tell it.")
@click.option("--build", help="Label of the engine build, where a file does not tell it.")
@click.option("--scenario", help="Name of what was asked, instead of one made from the file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (docs/json.md).")
def command(
    *,
    files: tuple[Path, ...],
    results: Path,
    testbed: str | None,
    build: str | None,
    scenario: str | None,
    as_json: bool,
) -> None:
    """Add records, and what other tools measured, to the store.

    Reads records of hybridwatch, result files of asv, JSON of vllm bench serve, throughput and
    latency, results and samples of lm-eval, reports of guidellm and aiperf, rows of InferenceX:
    told by what is inside. Of a folder every such file is read.

    What is there already is not added again. A file that cannot be read is named and the others
    are taken; the exit status is then 1.
    """
    haul = Haul(Intake(results), quiet=as_json)
    for path in _files(files):
        try:
            for taken in _take(path, haul.intake, Given(testbed, build, scenario)):
                haul.wait(taken)
        except (IngestError, RecordError, OSError) as error:
            haul.refuse(str(path), _reason(path, error))
    haul.write()
    if as_json:
        click.echo(json.dumps(haul.to_json(), indent=2, allow_nan=False))
    else:
        click.echo(haul.summary)
    if haul.bad:
        raise click.exceptions.Exit(_BAD_NEWS)


def _files(named: Iterable[Path]) -> Iterator[Path]:
    for path in named:
        if path.is_dir():
            yield from candidates(path)
        else:
            yield path


def _take(path: Path, intake: Intake, given: Given) -> Iterator[Taken]:
    raw = path.read_bytes()
    if all(word in raw for word in _OWN_WORDS):
        run, encoded = _own(path, raw)
        new = intake.add(run, encoded)
        yield _taken(intake, path, "record", run, new=new)
        return
    document = parse(path, raw)
    if is_companion(document) or _is_verdict(document):
        return  # a verdict is computed anew from its records
    # All of them before any is added: a file is taken whole or not at all.
    pairs = [(run, encode(run)) for run in read_foreign(document, given)]
    for run, encoded in pairs:
        assert run.source is not None  # noqa: S101 - what makes it foreign
        # Equal ids come of equal files, whose own date on the disk may differ.
        new = intake.find(run.id) is None and intake.add(run, encoded)
        yield _taken(intake, path, run.source.format, run, new=new)


def _own(path: Path, raw: bytes) -> tuple[Run, Encoded]:
    """Read a record, and keep its bytes: what is added to the store is what was checked."""
    beside: dict[str, bytes] = {}

    def read(name: str) -> bytes:
        beside[name] = path.with_name(name).read_bytes()
        return beside[name]

    run = decode_with(raw, read)
    check_record(run)
    stem = stem_of(run)
    for name in beside:
        if name != stem + BULK_SUFFIX:
            raise RecordError(f"bulk.file: expected {stem + BULK_SUFFIX}, found {name}")
    return run, Encoded(stem, raw, next(iter(beside.values()), None))


def _is_verdict(document: Document) -> bool:
    return isinstance(document.root, dict) and document.root.keys() >= _VERDICT_KEYS


def _taken(intake: Intake, path: Path, name: str, run: Run, *, new: bool) -> Taken:
    return Taken(str(path), name, run.id, str(intake.find(run.id)), new)


def _reason(path: Path, error: Exception) -> str:
    if isinstance(error, OSError):
        missing = error.filename or path
        return f"cannot read {missing}: {error.strerror or error}"
    return str(error)
