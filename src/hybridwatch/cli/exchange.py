"""``hybridwatch ingest`` and ``export``: records, and what other tools measure, in and out."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from hybridwatch.cli import completion
from hybridwatch.cli.options import print_json, takes_json, takes_results, verb, write_file
from hybridwatch.cli.subjects import takes_line
from hybridwatch.cli.terminal import say
from hybridwatch.errors import ExportError, IngestError, RecordError
from hybridwatch.formats.read import asv
from hybridwatch.formats.read.document import parse
from hybridwatch.formats.read.foreign import ForeignInput
from hybridwatch.formats.read.read import (
    candidates,
    companion,
    describe_known,
    read_foreign,
    read_own,
)
from hybridwatch.formats.write import otlp
from hybridwatch.records.codec import encode
from hybridwatch.records.run import Run, Trial
from hybridwatch.records.store import (
    Intake,
    find_record,
    list_records,
    read_bulk,
    read_file,
    read_run,
)
from hybridwatch.system.plain_text import visible

_MOST_BYTES: Final = 256 * 2**20
"""Of one file of another tool."""
_LONGEST: Final = 500
"""Characters of a reason; a file can have keys of any length."""
_OWN_WORDS: Final = (b'"schema_version"', b'"builds"', b'"trials"')
"""In every record; a quick look that spares reading its JSON twice."""
_VERDICT_KEYS: Final = frozenset({"report", "parameters", "tools"})


@dataclass(frozen=True, slots=True)
class Taken:
    """A run that is in the store now; ``left_out`` is as ``Source.left_out``."""

    file: str
    format: str
    run_id: str
    record: str
    new: bool
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Haul:
    """What became of every file, printed as soon as it is known unless it is quiet.

    ``bad`` are files that were not taken whole and paths with nothing to take, and why; of these
    there are ``barren`` ones. ``aside`` is what the files were that say nothing by themselves;
    ``nameless`` counts runs of a model that no one names.
    """

    intake: Intake
    quiet: bool
    taken: list[Taken] = field(default_factory=list)
    bad: list[tuple[str, str]] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)
    barren: int = 0
    nameless: int = 0
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
                for metric, reason in taken.left_out.items():
                    say(f"{taken.file}: left out: {_one_line(f'{metric}: {reason}')}", err=True)

    def refuse(self, file: str, reason: str) -> None:
        """Note a file that cannot be taken."""
        reason = _one_line(reason)
        self.bad.append((file, reason))
        if not self.quiet:
            say(f"{file}: {reason}", err=True)

    @property
    def count(self) -> int:
        """How much there was to take, or to refuse."""
        return len(self.taken) + len(self._waiting) + len(self.bad)

    @property
    def status(self) -> int:
        """The exit status: the call was wrong where no path had anything of a known format."""
        if not self.bad:
            return 0
        return 1 if self.taken or len(self.bad) > self.barren else 2

    def to_json(self) -> dict[str, Any]:
        """As docs/json.md has it."""
        return {
            "schema_version": 1,
            "taken": [asdict(taken) for taken in self.taken],
            "bad": [{"file": file, "reason": reason} for file, reason in self.bad],
        }


def _one_line(reason: str) -> str:
    """Shorten a reason: keys of a foreign file must neither command a terminal nor flood it."""
    reason = visible(" ".join(reason.split()))
    return reason if len(reason) <= _LONGEST else reason[: _LONGEST - 1] + "…"


@verb("ingest", "results.json --testbed my-machine --build cpu-0.27.1")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE|FOLDER..."
)
@takes_results("Folder that the records are added to.")
@click.option("--testbed", help="Id of the machine, if a file does not name it.")
@click.option("--build", help="Label of the engine build, if a file does not name it.")
@takes_line
@click.option("--scenario", help="Name of the scenario, instead of one made from the file.")
@takes_json()
def ingest_command(
    files: tuple[Path, ...], results: Path, *, as_json: bool, **given: str | None
) -> None:
    """Add records, and results of other tools, to the results folder.

    This reads records of hybridwatch, result files of asv, JSON of vllm bench serve, throughput and
    latency, SGLang's bench_serving, guidellm, aiperf, genai-perf, inference-perf and LLMPerf, rows
    of InferenceX and perf-eval, results and samples of lm-eval, and benchmarks of pytest-benchmark,
    google-benchmark, github-action-benchmark and Bencher. The content of a file decides which of
    these it is. In a folder every such file is read.

    A run that is there already is not added again. If a file cannot be read, it is named, the
    others are added, and the exit status is 1. It is 2 if there is nothing to add at all.
    """
    haul = Haul(Intake(results), quiet=as_json)
    for named in files:
        _take_all(named, haul, ForeignInput(**given))
    haul.write()
    if as_json:
        print_json(haul.to_json())
    else:
        added = sum(taken.new for taken in haul.taken)
        there = len(haul.taken) - added
        click.echo(f"{added} added, {there} already there, {len(haul.bad)} not taken")
        if haul.nameless:
            click.echo(
                f"{haul.nameless} compared with no other: a file names no model, "
                "--scenario says what was measured"
            )
    if haul.status:
        raise click.exceptions.Exit(haul.status)


def _take_all(named: Path, haul: Haul, given: ForeignInput) -> None:
    """Take a file, or every file of a folder, and say so where there is none."""
    count, aside = haul.count, len(haul.aside)
    for path in candidates(named) if named.is_dir() else (named,):
        try:
            for taken in _take(path, haul, given):
                haul.wait(taken)
        except (IngestError, RecordError) as error:
            haul.refuse(str(path), str(error))
        except OSError as error:
            missing = error.filename or path
            haul.refuse(str(path), f"cannot read {missing}: {error.strerror or error}")
    if haul.count == count:
        found = ", ".join(dict.fromkeys(haul.aside[aside:]))
        only = f"only {found}; name the folder, or what belongs to it" if found else "no JSON file"
        haul.barren += 1
        haul.refuse(str(named), f"expected {describe_known()}, found {only}")


def _take(path: Path, haul: Haul, given: ForeignInput) -> Iterator[Taken]:
    intake = haul.intake
    if asv.is_configuration(path):  # JSON with comments
        haul.aside.append(f"a configuration of asv, whose results are in {asv.find_results(path)}")
        return
    raw = read_file(path, _MOST_BYTES)
    if all(word in raw for word in _OWN_WORDS):
        run, encoded = read_own(raw, partial(read_bulk, path))
        new = intake.add(run, encoded)
        yield _taken(intake, path, "record", run, new=new)
        return
    document = parse(path, raw)
    root = document.root.value
    is_verdict = isinstance(root, dict) and root.keys() >= _VERDICT_KEYS
    aside = companion(document) or ("a verdict of hybridwatch" if is_verdict else None)
    if aside is not None:
        haul.aside.append(aside)
        return
    # All of them before any is added: a file is taken whole or not at all.
    pairs = [(run, encode(run)) for run in read_foreign(document, given)]
    if not pairs:
        haul.aside.append("results of asv in which nothing ran")
    for run, _ in pairs:
        _check_same(intake, run)
    haul.nameless += sum(run.has_own_load for run, _ in pairs)
    for run, encoded in pairs:
        assert run.source is not None  # noqa: S101 - what makes it foreign
        # Equal ids come of equal files, whose own date on the disk may differ.
        new = intake.find(run.id) is None and intake.add(run, encoded)
        yield _taken(intake, path, run.source.format, run, new=new)


def _check_same(intake: Intake, run: Run) -> None:
    """Refuse a run that is there already and was read otherwise, but for additional metrics."""
    there = intake.held(run.id)
    if there is None:
        return
    is_same = len(run.trials) == len(there.trials) and all(
        (new.phase, new.failure, new.answers) == (old.phase, old.failure, old.answers)
        and set(new.samples) >= set(old.samples)
        for new, old in zip(run.trials, there.trials, strict=True)
    )
    if not is_same:
        raise IngestError(
            f"run {run.id} is there already as {intake.find(run.id)} with other values, because "
            "other files lay next to this one or another version read it; remove that record to "
            "add the file again"
        )


def _taken(intake: Intake, path: Path, name: str, run: Run, *, new: bool) -> Taken:
    left_out = run.source.left_out if run.source else {}
    return Taken(str(path), name, run.id, str(intake.find(run.id)), new, left_out)


_STDOUT: Final = "-"
_NO_CLIENT: Final = "their load client's JSON is not there, or says too little for a row"


def _to_files(form: str, runs: Sequence[Run], out: Path) -> Mapping[str, bytes]:
    """Give the files of a format that is a folder."""
    if form == "asv":
        from hybridwatch.formats.write.asv import find_commit, to_asv

        filed = _those(runs, lambda run: find_commit(run) is not None, "they have no commit")
        if not filed:
            raise ExportError("asv stores its results by commit, and none of these runs has one")
        return to_asv(filed, lambda name: _json_in(out / name))
    if form == "inferencex":
        from hybridwatch.formats.write.serving import inferencex_rows, to_inferencex

        return to_inferencex(_those(runs, inferencex_rows, _NO_CLIENT))
    from hybridwatch.formats.write.points import to_github_action_benchmark

    return to_github_action_benchmark(runs)


def _to_bytes(form: str, runs: Sequence[Run]) -> bytes:
    """Give the file of any other format; most of these import numpy."""
    if form == "perf-eval":
        from hybridwatch.formats.write.serving import perf_eval_rows, to_perf_eval

        return to_perf_eval(_those(runs, perf_eval_rows, _NO_CLIENT))
    if form == "otlp":
        timed = _those(runs, otlp.has_times, "it is not known when their trials ran")
        if not timed:
            raise ExportError(
                "OTLP: expected a run whose trials have a start and a length, found none"
            )
        return otlp.to_otlp(timed)
    from hybridwatch.formats.write.points import to_bencher, to_csv, to_hud, to_parquet

    if form == "hud":
        return to_hud(runs, os.environ)
    return {"bencher": to_bencher, "csv": to_csv, "parquet": to_parquet}[form](runs)


def _those(runs: Sequence[Run], fits: Callable[[Run], object], why: str) -> list[Run]:
    """Give the runs that can be written, and name the others."""
    left = [run.id for run in runs if not fits(run)]
    if left:
        say(f"left out, since {why}: {', '.join(left)}", err=True)
    return [run for run in runs if run.id not in left]


_FOLDERS: Final = ("asv", "github-action-benchmark", "inferencex")
_FORMS: Final = (
    *("asv", "hud", "github-action-benchmark", "bencher", "inferencex", "perf-eval", "otlp"),
    *("csv", "parquet"),
)
_WHOLE: Final = frozenset({"inferencex", "perf-eval", "otlp"})
"""Rows and traces of which no metric can be left out."""
_OF_CLIENT: Final = frozenset({"asv", "hud", "inferencex", "perf-eval"})
"""These need what the load client or asv wrote, which lies next to the record."""


@verb("export", "--to csv --out all.csv", "latest --to bencher")
@click.argument("records", nargs=-1, metavar="[RECORD]...", shell_complete=completion.records)
@click.option("--to", "form", required=True, type=click.Choice(_FORMS), help="The format.")
@click.option(
    "--out",
    default=_STDOUT,
    show_default=True,
    help="File to write, or folder for asv, github-action-benchmark and inferencex; - is standard "
    "output.",
)
@takes_results("Folder in which run ids are looked up.")
@click.option(
    "--metric", "metrics", multiple=True, help="Only this metric, such as ttft; may be repeated."
)
def export_command(
    *, records: tuple[str, ...], form: str, out: str, results: Path, metrics: tuple[str, ...]
) -> None:
    """Write records for other tools; without RECORD, every record of the results folder.

    RECORD is a record file, the id of a run, or "latest". csv and parquet have a row for each
    trial. `hybridwatch detect` reads csv: choose metrics with one direction. For asv lower is
    always better, so tokens per second become seconds per token. bencher and
    github-action-benchmark hold one run each: name it. A name that is too long for Bencher ends in
    a digest. hud names a model without its folders. inferencex and perf-eval have a row for each
    build and load, the medians of its trials. otlp has a trace for each run: its phases and trials
    as spans, in the JSON of OpenTelemetry's collector.
    """
    if out == _STDOUT and (form in _FOLDERS or (form == "parquet" and sys.stdout.isatty())):
        raise ExportError(f"--to {form}: expected --out with a file or folder to write")
    if metrics and form in _WHOLE:
        raise ExportError(f"--to {form}: expected no --metric, since it is written whole")
    paths = [find_record(results, key) for key in records] or list_records(results)
    if not paths:
        raise ExportError(f"{results}: expected records, found none")
    runs = [read_run(path, bulk=form in _OF_CLIENT) for path in paths]
    if metrics:
        runs = [_only(run, frozenset(metrics), form) for run in runs]
    if form in _FOLDERS:
        for name, file in _to_files(form, runs, Path(out)).items():
            write_file(Path(out) / name, file, reported=True)
        return
    content = _to_bytes(form, runs)
    if out == _STDOUT:
        click.echo(content, nl=False)
    else:
        write_file(Path(out), content, reported=True)


def _only(run: Run, metrics: frozenset[str], form: str) -> Run:
    def kept(trial: Trial) -> Trial:
        samples = tuple(one for one in trial.samples if one.metric in metrics)
        # What asv wrote is of all metrics.
        whole = trial.client_result if form != "asv" else None
        return replace(trial, samples=samples, client_result=whole)

    return replace(run, trials=tuple(map(kept, run.trials)))


def _json_in(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except (OSError, ValueError) as error:
        raise ExportError(f"{path}: expected a file of asv: {error}") from error
    if not isinstance(found, dict):
        raise ExportError(f"{path}: expected a file of asv, found a {type(found).__name__}")
    return found
