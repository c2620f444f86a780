"""``hybridwatch ingest``: records from elsewhere, and what other tools measured, into the store."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from hybridwatch.cli.options import examples, print_json, takes_results
from hybridwatch.cli.subject_options import takes_line
from hybridwatch.errors import IngestError, RecordError
from hybridwatch.formats.read.foreign import ForeignInput, parse
from hybridwatch.formats.read.read import KNOWN, candidates, companion, read_foreign, read_own
from hybridwatch.records.codec import encode
from hybridwatch.records.run import Run
from hybridwatch.records.store import Intake, read_bulk, read_file
from hybridwatch.system.console_text import say
from hybridwatch.system.plain_text import visible

_BAD_NEWS: Final = 1
_WRONG_CALL: Final = 2
_MOST_BYTES: Final = 256 * 2**20
"""Of one file of another tool."""
_LONGEST: Final = 500
"""Characters of a reason; a file can have keys of any length."""
_OWN_WORDS: Final = (b'"schema_version"', b'"builds"', b'"trials"')
"""In every record; a quick look that spares reading its JSON twice."""
_VERDICT: Final = "a verdict of hybridwatch"
_VERDICT_KEYS: Final = frozenset({"report", "parameters", "tools"})


@dataclass(frozen=True, slots=True)
class Taken:
    """A run that is in the store now."""

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
    """What became of every file, printed as soon as it is known.

    Attributes:
        intake: Where the records go.
        quiet: Whether to print nothing yet.
        taken: Runs that are in the store.
        bad: Files that were not taken, wholly or in part, and paths with nothing to take.
        aside: What the files were that say nothing by themselves.
        barren: How many paths had nothing to take.
    """

    intake: Intake
    quiet: bool
    taken: list[Taken] = field(default_factory=list)
    bad: list[Bad] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)
    barren: int = 0
    _waiting: list[Taken] = field(default_factory=list)

    def wait(self, taken: Taken) -> None:
        """Note a run that is to be written."""
        self._waiting.append(taken)
        if self.intake.is_full:
            self.write()

    def write(self) -> None:
        """Write the runs that wait, and print what became of them."""
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
        # Keys of a file from outside must neither command the terminal nor flood it.
        reason = visible(" ".join(reason.split()))
        if len(reason) > _LONGEST:
            reason = reason[: _LONGEST - 1] + "…"
        self.bad.append(Bad(file, reason))
        if not self.quiet:
            say(f"{file}: {reason}", err=True)

    def refuse_path(self, path: Path, aside: Iterable[str]) -> None:
        """Note a path in which nothing was to be taken, and nothing wrong."""
        found = ", ".join(dict.fromkeys(aside))
        only = f"only {found}; name the folder, or what belongs to it" if found else "no JSON file"
        self.barren += 1
        self.refuse(str(path), f"expected {KNOWN}, found {only}")

    @property
    def count(self) -> int:
        """How much there was to take, or to refuse."""
        return len(self.taken) + len(self._waiting) + len(self.bad)

    @property
    def status(self) -> int:
        """The exit status: the call was wrong where no path had anything of a known format."""
        if not self.bad:
            return 0
        return _BAD_NEWS if self.taken or len(self.bad) > self.barren else _WRONG_CALL

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
@click.option("--testbed", help="Id of the machine, if a file does not name it.")
@click.option("--build", help="Label of the engine build, if a file does not name it.")
@takes_line
@click.option("--scenario", help="Name of the scenario, instead of one made from the file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (docs/json.md).")
def command(
    *,
    files: tuple[Path, ...],
    results: Path,
    testbed: str | None,
    build: str | None,
    line: str | None,
    scenario: str | None,
    as_json: bool,
) -> None:
    """Add records, and results of other tools, to the results folder.

    This reads records of hybridwatch, result files of asv, JSON of vllm bench serve, throughput and
    latency, results and samples of lm-eval, reports of guidellm and aiperf, rows of InferenceX and
    perf-eval. The content of a file decides which of these it is. In a folder every such file is
    read.

    A run that is there already is not added again. If a file cannot be read, it is named, the
    others are added, and the exit status is 1. It is 2 if there is nothing to add at all.
    """
    haul = Haul(Intake(results), quiet=as_json)
    for named in files:
        _take_all(named, haul, ForeignInput(testbed, build, scenario, line))
    haul.write()
    if as_json:
        print_json(haul.to_json())
    else:
        click.echo(haul.summary)
    if haul.status:
        raise click.exceptions.Exit(haul.status)


def _take_all(named: Path, haul: Haul, given: ForeignInput) -> None:
    """Take a file, or every file of a folder, and say so where there is none."""
    count, aside = haul.count, len(haul.aside)
    for path in candidates(named) if named.is_dir() else (named,):
        try:
            for taken in _take(path, haul, given):
                haul.wait(taken)
        except (IngestError, RecordError, OSError) as error:
            haul.refuse(str(path), _reason(path, error))
    if haul.count == count:
        haul.refuse_path(named, haul.aside[aside:])


def _take(path: Path, haul: Haul, given: ForeignInput) -> Iterator[Taken]:
    intake = haul.intake
    raw = read_file(path, _MOST_BYTES)
    if all(word in raw for word in _OWN_WORDS):
        run, encoded = read_own(raw, partial(read_bulk, path))
        new = intake.add(run, encoded)
        yield _taken(intake, path, "record", run, new=new)
        return
    document = parse(path, raw)
    root = document.root.value
    is_verdict = isinstance(root, dict) and root.keys() >= _VERDICT_KEYS
    aside = companion(document) or (_VERDICT if is_verdict else None)
    if aside is not None:
        haul.aside.append(aside)
        return
    # All of them before any is added: a file is taken whole or not at all.
    pairs = [(run, encode(run)) for run in read_foreign(document, given)]
    if not pairs:
        haul.aside.append("results of asv in which nothing ran")
    for run, _ in pairs:
        _check_same(intake, run)
    for run, encoded in pairs:
        assert run.source is not None  # noqa: S101 - what makes it foreign
        # Equal ids come of equal files, whose own date on the disk may differ.
        new = intake.find(run.id) is None and intake.add(run, encoded)
        yield _taken(intake, path, run.source.format, run, new=new)


def _check_same(intake: Intake, run: Run) -> None:
    """Refuse a run that is there already and was read otherwise.

    Its id comes of the file alone, and not of the documents or requests beside it.
    """
    there = intake.held(run.id)
    if there is not None and _measured(there) != _measured(run):
        raise IngestError(
            f"run {run.id} is there already as {intake.find(run.id)} with other values, because "
            "other files lay beside this one or another version read it; remove that record to add "
            "the file again"
        )


def _measured(run: Run) -> list[tuple[object, ...]]:
    return [(trial.phase, trial.failure, trial.samples, trial.answers) for trial in run.trials]


def _taken(intake: Intake, path: Path, name: str, run: Run, *, new: bool) -> Taken:
    return Taken(str(path), name, run.id, str(intake.find(run.id)), new)


def _reason(path: Path, error: Exception) -> str:
    if isinstance(error, OSError):
        missing = error.filename or path
        return f"cannot read {missing}: {error.strerror or error}"
    return str(error)
