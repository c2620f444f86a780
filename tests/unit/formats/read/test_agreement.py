"""A file that contradicts itself is refused with both numbers."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hybridwatch.cli.main import cli
from hybridwatch.errors import IngestError
from hybridwatch.formats.read.agreement import check_document, check_record
from hybridwatch.formats.read.foreign import DocumentNode, ForeignInput, parse
from hybridwatch.formats.read.read import read_foreign
from hybridwatch.records.run import Run, Sample
from hybridwatch.records.store import write_run
from tests.store_builders import Plan
from tests.store_builders import run as whole_run

LM_EVAL = Path(__file__).parents[3] / "fixtures" / "foreign" / "lm-eval"
RECALL = "hybridwatch_recall"


def lm_eval(
    folder: Path,
    results: Callable[[Any], None] = lambda _: None,
    samples: Callable[[list[Any]], None] = lambda _: None,
) -> list[Run]:
    """Read lm-eval's files after a change of the results, and of the documents of one task."""
    for path in LM_EVAL.iterdir():
        text = path.read_text()
        if path.name.startswith("results"):
            told = json.loads(text)
            results(told)
            text = json.dumps(told)
        elif RECALL in path.name:
            rows = [json.loads(line) for line in text.splitlines()]
            samples(rows)
            text = "\n".join(map(json.dumps, rows))
        (folder / path.name).write_text(text)
    (path,) = folder.glob("results*")
    return read_foreign(parse(path, path.read_bytes()), ForeignInput())


def test_a_score_that_is_not_the_mean_of_its_documents_is_refused(tmp_path) -> None:
    def inflate(told: Any) -> None:
        told["results"][RECALL]["exact_match,stripped"] = 0.95

    with pytest.raises(IngestError) as caught:
        lm_eval(tmp_path, inflate)
    assert str(caught.value) == (
        "results.hybridwatch_recall.exact_match,stripped: expected 0.8, the mean of its 10 "
        "documents, found 0.95"
    )


@pytest.mark.parametrize(("place", "score"), [(0, 0.0), (1, 1.0)])
def test_a_document_scored_against_its_own_response_is_refused(tmp_path, place, score) -> None:
    def rescore(rows: list[Any]) -> None:
        rows[place]["exact_match"] = score

    wanted = rf"samples_.*: line {place + 1}.exact_match: expected {1 - score:g} \(response '"
    with pytest.raises(IngestError, match=wanted):
        lm_eval(tmp_path, samples=rescore)


def row(target: str, response: str, score: float) -> DocumentNode:
    return DocumentNode({"target": target, "filtered_resps": [response], "exact_match": score})


def listed(**options: Any) -> dict[str, Any]:
    return {"metric_list": [{"metric": "exact_match", **options}]}


GSM8K = listed(ignore_case=True, regexes_to_ignore=[",", r"\$", "(?s).*#### ", r"\.$"])


@pytest.mark.parametrize(
    ("target", "response", "config"),
    [
        ("so 18.\n#### 1,018", "$1018.", GSM8K),
        ("Yes", "yes", listed(ignore_case=True)),
        ("yes!", "yes", listed(ignore_punctuation=True)),
        ("yes", "yes ", listed()),  # only what cannot be a matter of white space is held against it
        ("['a', 'b']", "b", listed()),
        ("2", "Paris", listed() | {"doc_to_choice": ["Rome", "Oslo", "Paris"]}),
        (r"\frac12", "0.5", listed() | {"process_results": "def f(): ..."}),
        ("18", "eighteen", listed(regexes_to_ignore=["(a+)+$"])),
        ("18", "eighteen", {}),
    ],
)
def test_what_the_task_calls_equal_or_cannot_be_computed_is_believed(
    target, response, config
) -> None:
    check_document(row(target, response, 1.0), "exact_match", config)


def test_a_line_break_behind_the_last_point_stays_as_lm_eval_leaves_it() -> None:
    check_document(row("18", "18.\n", 0.0), "exact_match", GSM8K)


@pytest.mark.parametrize(
    ("response", "score"), [("$1018.", 0.0), ("1019", 1.0), ("[invalid]", 1.0)]
)
def test_gsm8k_is_computed_as_the_task_does(response, score) -> None:
    with pytest.raises(IngestError, match="exact_match: expected"):
        check_document(row("so 18.\n#### 1,018", response, score), "exact_match", GSM8K)


def contradicting(values: Callable[[tuple[float, ...]], tuple[float, ...]]) -> Run:
    """Make a record whose first accuracy is another than the answers beside it are."""
    run = whole_run(Plan(documents=8, accuracy=(0.5, 0.5)))
    at = next(trial.index for trial in run.trials if trial.answers)
    samples = tuple(
        replace(sample, values=values(sample.values))
        if sample.metric == f"accuracy.{run.trials[at].answers[0].task}"
        else sample
        for sample in run.trials[at].samples
    )
    trials = list(run.trials)
    trials[at] = replace(trials[at], samples=samples)
    return replace(run, trials=tuple(trials))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (lambda old: tuple(0.0 for _ in old), "expected .*, as its 8 answers are, found 0"),
        (lambda old: old * 2, "expected 8 values, found 16"),
        (lambda old: old[::-1], r"document \d: expected [01], as its answer is"),
    ],
)
def test_a_record_whose_accuracy_is_not_that_of_its_answers_is_refused(values, told) -> None:
    with pytest.raises(IngestError, match=r"trials\[\d+\].samples: accuracy\..*" + told):
        check_record(contradicting(values))


def test_ingest_does_not_take_a_record_that_contradicts_itself(tmp_path) -> None:
    record = write_run(tmp_path / "in", contradicting(lambda old: tuple(0.0 for _ in old)))
    answer = CliRunner().invoke(cli, ["ingest", str(record), "--results", str(tmp_path / "out")])
    assert answer.exit_code == 1
    assert "answers are, found 0" in answer.output


def test_a_reduced_score_is_held_against_the_mean() -> None:
    run = whole_run(Plan(documents=8))
    trial = next(trial for trial in run.trials if trial.answers)
    reduced = Sample(f"accuracy.{trial.answers[0].task}", (0.125,), "mean")
    with pytest.raises(IngestError, match=r"as its 8 answers are, found 0\.125"):
        check_record(replace(run, trials=(replace(trial, samples=(reduced,)),)))
