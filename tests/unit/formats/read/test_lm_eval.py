"""Evaluations as lm-eval itself writes them, and what contradicts itself in them."""

import json
import re
import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from hybridwatch.errors import IngestError
from hybridwatch.formats.read.agreement import check_document, check_record
from hybridwatch.formats.read.document import DocumentNode
from hybridwatch.measurement.accuracy.embedded import TASKS_DIRECTORY, read_documents
from hybridwatch.records.run import Run, Sample
from hybridwatch.records.store import write_run
from tests.command_line import run_verb
from tests.refusals import refusal
from tests.store_builders import Plan
from tests.store_builders import run as whole_run
from tests.unit.formats.read.reading import companion, only, read

LM_EVAL = Path(__file__).parents[3] / "fixtures" / "foreign" / "lm-eval"
RECALL = "hybridwatch_recall"
DOCUMENTS = 6
ANSWERS = {
    document.prompt: document.answer
    for document in read_documents(TASKS_DIRECTORY / "recall.jsonl")
}
CHOICES = "colours"
QUESTIONS = (("grass", 1), ("blood", 0), ("sky", 2))
COLOURS = ("red", "green", "blue")


def a_model(wrong: Collection[int]) -> Any:
    """Answers every document but some; of choices, takes everything for green."""
    from lm_eval.api.model import LM  # late: collecting need not wait for lm-eval

    class Model(LM):  # type: ignore[misc]  # lm-eval has no types
        def generate_until(self, requests: list[Any], **_: Any) -> list[str]:
            return [
                "nonsense" if place in wrong else ANSWERS[request.args[0]]
                for place, request in enumerate(requests)
            ]

        def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
            return [(-1.5 if "green" in one.args[1] else -3.25, False) for one in requests]

        def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
            raise NotImplementedError

    return Model()


def evaluate(
    folder: Path,
    wrong: Collection[int] = (),
    task: str = RECALL,
    config: dict[str, Any] | None = None,
    *,
    keep_samples: bool = True,
) -> Path:
    """Evaluate once, as ``lm_eval --output_path`` does, and give the file of results."""
    from lm_eval import simple_evaluate
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    tracker = EvaluationTracker(output_path=str(folder))
    tracker.general_config_tracker.log_experiment_args(
        "local-completions", "model=tiny-hybrid", None, None, False
    )
    found = simple_evaluate(
        model=a_model(wrong),
        tasks=[config or task],
        task_manager=TaskManager(include_path=str(TASKS_DIRECTORY), include_defaults=False),
        limit=DOCUMENTS,
        bootstrap_iters=0,
    )
    samples = found.pop("samples")
    tracker.save_results_aggregated(results=found, samples=samples if keep_samples else None)
    if keep_samples:
        tracker.save_results_samples(task_name=task, samples=samples[task])
    return folder / "tiny-hybrid" / f"results_{tracker.date_id}.json"


def evaluate_choices(
    folder: Path, choices: tuple[str, ...] = COLOURS, metrics: tuple[str, ...] = ("acc",)
) -> Path:
    """Evaluate a task of several choices."""
    rows = [{"question": question, "answer": answer} for question, answer in QUESTIONS]
    data = folder / "colours.json"
    data.write_text(json.dumps(rows), encoding="utf-8")
    config = {
        "task": CHOICES,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}},
        "output_type": "multiple_choice",
        "test_split": "test",
        "doc_to_text": "{{question}} is",
        "doc_to_target": "answer",
        "doc_to_choice": list(choices),
        "metric_list": [{"metric": one, "aggregation": "mean"} for one in metrics],
    }
    return evaluate(folder, task=CHOICES, config=config)


@pytest.fixture(scope="module")
def evaluations(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three of one model: one wrong answer, three wrong answers, and one without documents."""
    folder = tmp_path_factory.mktemp("lm-eval")
    return [
        evaluate(folder, {0}),
        evaluate(folder, {1, 2, 3}),
        evaluate(folder, {5}, keep_samples=False),
    ]


@pytest.fixture
def copies(evaluations: list[Path], tmp_path: Path) -> list[Path]:
    """The same in a folder of this test's own."""
    folder = shutil.copytree(evaluations[0].parent, tmp_path / "in")
    return [folder / path.name for path in evaluations]


def rights(path: Path) -> list[bool]:
    return [answer.correct for answer in only(path).trials[0].answers]


def share(path: Path) -> float:
    (sample,) = only(path).trials[0].samples
    assert sample.statistic == "mean"
    (value,) = sample.values
    return value


def samples_of(results: Path) -> Path:
    return results.with_name(
        results.name.replace("results_", f"samples_{RECALL}_").replace(".json", ".jsonl")
    )


@pytest.fixture
def ingest(tmp_path: Path) -> Callable[..., Result]:
    """Ingest into a store of this test's own."""
    store = ["--results", str(tmp_path / "results")]
    return lambda path, status=None: run_verb("ingest", path, *store, status=status)


def test_lm_eval_gives_evaluations_of_one_task_one_hash(evaluations) -> None:
    """What made another evaluation's answers look like one's own."""
    told = [json.loads(path.read_text())["task_hashes"] for path in evaluations]
    assert told[0] == told[1]
    assert told[2] == {}


def test_every_evaluation_of_a_folder_has_its_own_answers(evaluations) -> None:
    first, second, _ = evaluations
    assert rights(first) == [False, True, True, True, True, True]
    assert rights(second) == [True, False, False, False, True, True]


def test_results_without_documents_borrow_none(evaluations) -> None:
    assert rights(evaluations[2]) == []
    assert share(evaluations[2]) == pytest.approx(5 / 6)


def test_results_whose_documents_are_gone_borrow_none(copies) -> None:
    samples_of(copies[0]).unlink()
    assert rights(copies[0]) == []
    assert share(copies[0]) == pytest.approx(5 / 6)
    assert len(rights(copies[1])) == DOCUMENTS


def test_answers_put_under_the_name_of_another_evaluation_are_refused(copies) -> None:
    shutil.copy(samples_of(copies[0]), samples_of(copies[1]))
    with pytest.raises(IngestError, match=r"expected 0\.83\d+, the mean of its 6 documents, found"):
        only(copies[1])


def test_answers_whose_score_the_results_do_not_have_are_refused(copies) -> None:
    told = json.loads(copies[0].read_text())
    scores = told["results"][RECALL]
    scores["exact_match,other"] = scores.pop("exact_match,stripped")
    copies[0].write_text(json.dumps(told))
    with pytest.raises(IngestError, match="exact_match,stripped: expected a value, found nothing"):
        only(copies[0])


@pytest.mark.parametrize("change", [{"filter": "stripped-too"}, {"doc_id": 1}])
def test_a_document_that_left_its_filter_or_is_there_twice_is_missed(copies, change) -> None:
    path = samples_of(copies[0])
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[5] |= change
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(IngestError, match=r"expected [36] documents, each through every of [12] f"):
        only(copies[0])


def test_without_a_date_in_their_names_evaluations_are_not_distinguished(copies) -> None:
    folder = copies[0].parent
    for letter, path in zip("ab", copies, strict=False):
        samples_of(path).rename(folder / f"samples_{letter}.jsonl")
        path.rename(folder / f"results_{letter}.json")
    assert rights(folder / "results_a.json") == rights(folder / "results_b.json") == []
    lone = folder / "samples_a.jsonl"
    with pytest.raises(IngestError, match=r"to which of results_a\.json, results_b\.json they bel"):
        companion(lone)


def test_two_tasks_of_the_same_documents_keep_their_own_answers(copies) -> None:
    twin = "hybridwatch_twin"
    told = json.loads(copies[0].read_text())
    for part in ("results", "versions", "task_hashes", "configs"):
        told[part][twin] = told[part][RECALL]
    told["results"][twin] = told["results"][RECALL] | {"exact_match,stripped": 1.0}
    copies[0].write_text(json.dumps(told))
    rows = [json.loads(line) for line in samples_of(copies[0]).read_text().splitlines()]
    rows[0] |= {"exact_match": 1.0, "filtered_resps": [rows[0]["target"]]}
    named = samples_of(copies[0]).name.replace(RECALL, twin)
    (copies[0].parent / named).write_text("\n".join(map(json.dumps, rows)))
    answers = only(copies[0]).trials[0].answers
    assert sum(answer.correct for answer in answers if answer.task == "recall") == 5
    assert sum(answer.correct for answer in answers if answer.task == "twin") == 6


def test_a_folder_of_whole_evaluations_is_taken_without_a_word(ingest, copies) -> None:
    assert "3 added, 0 already there, 0 not taken" in ingest(copies[0].parent, status=0).output


def test_documents_that_no_results_count_are_named(ingest, copies) -> None:
    lone, cut = samples_of(copies[0]), samples_of(copies[1])
    copies[0].unlink()
    cut.write_text("".join(cut.read_text().splitlines(keepends=True)[:-1]))
    answer = ingest(copies[0].parent, status=1)
    assert f"{lone.name}: samples of lm-eval: expected {copies[0].name} next to" in answer.output
    wanted = f"expected the documents of a task by task_hashes of {copies[1].name}, found others"
    assert f"{cut.name}: samples of lm-eval: {wanted}" in answer.output
    assert "2 added, 0 already there, 2 not taken" in answer.output


def test_an_evaluation_that_was_taken_without_its_documents_is_not_passed_over(
    ingest, copies
) -> None:
    """As a store has it where results borrowed the documents of another evaluation."""
    samples = samples_of(copies[0])
    text = samples.read_text()
    samples.unlink()
    ingest(copies[0], status=0)
    assert "already there" in ingest(copies[0]).output
    folder = shutil.copytree(copies[0].parent, copies[0].parent.with_name("again"))
    (folder / samples.name).write_text(text)
    answer = ingest(folder, status=1)
    assert "is there already as" in answer.output
    assert "remove that record to add the file again" in answer.output


def change_first(results: Path, change: Mapping[str, Any]) -> None:
    (path,) = results.parent.glob("samples_*.jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rows[0] |= change
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return evaluate_choices(tmp_path)


@pytest.mark.parametrize("metrics", [("acc",), ("acc", "acc_mutual_info")])
def test_lm_evals_own_scores_agree_with_its_likelihoods(tmp_path, metrics) -> None:
    assert rights(evaluate_choices(tmp_path, metrics=metrics)) == [True, False, False]


def test_a_likelihood_that_speaks_for_another_choice_is_refused(results) -> None:
    change_first(results, {"filtered_resps": [["-1", "False"], ["-2", "False"], ["-3", "False"]]})
    wanted = "expected 0 (choice 0 is the likeliest, target 1), found 1"
    with pytest.raises(IngestError, match=re.escape(wanted)):
        rights(results)


def test_choices_that_are_numbers_may_be_meant_by_the_target(tmp_path) -> None:
    """A target "1" is then a place or a text, and lm-eval does not write which."""
    results = evaluate_choices(tmp_path, ("1", "green", "2"))
    change_first(results, {"filtered_resps": [["-1", "False"], ["-2", "False"], ["-3", "False"]]})
    assert rights(results)[0]


@pytest.mark.parametrize("responses", [["-1"], [["nan", "False"], ["-1", "False"]]])
def test_without_likelihoods_a_score_is_believed(results, responses) -> None:
    change_first(results, {"filtered_resps": responses})
    assert rights(results) == [True, False, False]


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
    return read(path)


def test_a_score_that_is_not_the_mean_of_its_documents_is_refused(tmp_path) -> None:
    def inflate(told: Any) -> None:
        told["results"][RECALL]["exact_match,stripped"] = 0.95

    assert refusal(IngestError, lm_eval, tmp_path, inflate) == (
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
    answer = run_verb("ingest", record, "--results", tmp_path / "out", status=1)
    assert "answers are, found 0" in answer.output


def test_a_reduced_score_is_held_against_the_mean() -> None:
    run = whole_run(Plan(documents=8))
    trial = next(trial for trial in run.trials if trial.answers)
    reduced = Sample(f"accuracy.{trial.answers[0].task}", (0.125,), "mean")
    with pytest.raises(IngestError, match=r"as its 8 answers are, found 0\.125"):
        check_record(replace(run, trials=(replace(trial, samples=(reduced,)),)))
