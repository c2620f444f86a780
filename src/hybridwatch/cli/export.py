"""``hybridwatch export``: records in the forms of other tools."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from hybridwatch.cli import completion
from hybridwatch.cli.options import examples, takes_results, write_file
from hybridwatch.errors import ExportError
from hybridwatch.records.run import Run, Trial
from hybridwatch.records.store import find_record, list_records, read_run
from hybridwatch.system.console_text import say

_STDOUT: Final = "-"
_ALONE: Final = ""
"""Name of the only file, which goes where ``--out`` says."""
_NO_CLIENT: Final = "their load client's JSON is not there, or says too little for a row"


def _csv(runs: Sequence[Run], _: Path) -> Mapping[str, bytes]:
    from hybridwatch.formats.write.points import to_csv

    return {_ALONE: to_csv(runs)}


def _parquet(runs: Sequence[Run], _: Path) -> Mapping[str, bytes]:
    from hybridwatch.formats.write.points import to_parquet

    return {_ALONE: to_parquet(runs)}


def _hud(runs: Sequence[Run], _: Path) -> Mapping[str, bytes]:
    from hybridwatch.formats.write.points import to_hud

    return {_ALONE: to_hud(runs, os.environ)}


def _bencher(runs: Sequence[Run], _: Path) -> Mapping[str, bytes]:
    from hybridwatch.formats.write.points import to_bencher

    return {_ALONE: to_bencher(runs)}


def _github_action_benchmark(runs: Sequence[Run], _: Path) -> Mapping[str, bytes]:
    from hybridwatch.formats.write.points import to_github_action_benchmark

    return to_github_action_benchmark(runs)


def _asv(runs: Sequence[Run], out: Path) -> Mapping[str, bytes]:
    from hybridwatch.formats.write.asv import find_commit, to_asv

    filed = _those(runs, lambda run: find_commit(run) is not None, "they have no commit")
    if not filed:
        raise ExportError("asv stores its results by commit, and none of these runs has one")
    return to_asv(filed, lambda name: _json_in(out / name))


def _inferencex(runs: Sequence[Run], _: Path) -> Mapping[str, bytes]:
    from hybridwatch.formats.write.serving import inferencex_rows, to_inferencex

    return to_inferencex(_those(runs, inferencex_rows, _NO_CLIENT))


def _perf_eval(runs: Sequence[Run], _: Path) -> Mapping[str, bytes]:
    from hybridwatch.formats.write.serving import perf_eval_rows, to_perf_eval

    return {_ALONE: to_perf_eval(_those(runs, perf_eval_rows, _NO_CLIENT))}


def _otlp(runs: Sequence[Run], _: Path) -> Mapping[str, bytes]:
    from hybridwatch.formats.write.otlp import has_times, to_otlp

    timed = _those(runs, has_times, "nobody knows when their trials ran")
    if not timed:
        raise ExportError("OTLP: expected a run whose trials have a start and a length, found none")
    return {_ALONE: to_otlp(timed)}


def _those(runs: Sequence[Run], fits: Callable[[Run], object], why: str) -> list[Run]:
    """Give the runs that can be written, and name the others."""
    left = [run.id for run in runs if not fits(run)]
    if left:
        say(f"left out, since {why}: {', '.join(left)}", err=True)
    return [run for run in runs if run.id not in left]


_Form = Callable[[Sequence[Run], Path], Mapping[str, bytes]]

_FORMS: Final[Mapping[str, _Form]] = {
    "asv": _asv,
    "hud": _hud,
    "github-action-benchmark": _github_action_benchmark,
    "bencher": _bencher,
    "inferencex": _inferencex,
    "perf-eval": _perf_eval,
    "otlp": _otlp,
    "csv": _csv,
    "parquet": _parquet,
}
_FOLDERS: Final = frozenset({"asv", "github-action-benchmark", "inferencex"})
_WHOLE: Final = frozenset({"inferencex", "perf-eval", "otlp"})
"""Rows and traces of which no metric can be left out."""
_OF_CLIENT: Final = frozenset({"hud", "inferencex", "perf-eval"})
"""These need the load client's JSON, which lies beside the record."""


@click.command(
    "export",
    epilog=examples(
        "hybridwatch export --to csv --out all.csv",
        "hybridwatch export latest --to bencher",
    ),
)
@click.argument("records", nargs=-1, metavar="[RECORD]...", shell_complete=completion.records)
@click.option("--to", "form", required=True, type=click.Choice(list(_FORMS)), help="The format.")
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
def command(
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
        runs = [_only(run, frozenset(metrics)) for run in runs]
    make: _Form = _FORMS[form]
    files = make(runs, Path(out))
    if out == _STDOUT:
        click.echo(files[_ALONE], nl=False)
        return
    for name, content in files.items():
        path = Path(out) / name if name else Path(out)
        write_file(path, content)
        say(f"{path}: {len(content)} bytes", err=True)


def _only(run: Run, metrics: frozenset[str]) -> Run:
    def kept(trial: Trial) -> Trial:
        samples = (sample for sample in trial.samples if sample.metric in metrics)
        return replace(trial, samples=tuple(samples))

    return replace(run, trials=tuple(map(kept, run.trials)))


def _json_in(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except (OSError, ValueError) as error:
        raise ExportError(f"{path}: expected a file of asv: {error}") from error
    if not isinstance(found, dict):
        raise ExportError(f"{path}: expected a file of asv, found a {type(found).__name__}")
    return found
