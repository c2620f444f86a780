"""Several evaluations in one folder, as lm-eval itself writes them, and whose answers are whose."""

import json
import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hybridwatch.cli.main import cli
from hybridwatch.errors import IngestError
from hybridwatch.formats.read.foreign import ForeignInput, parse
from hybridwatch.formats.read.read import companion, read_foreign
from hybridwatch.measurement.accuracy.embedded import TASKS_DIRECTORY, read_documents
from hybridwatch.records.run import Run

RECALL = "hybridwatch_recall"
DOCUMENTS = 6
ANSWERS = {
    document.prompt: document.answer
    for document in read_documents(TASKS_DIRECTORY / "recall.jsonl")
}


def a_model(wrong: Collection[int]) -> Any:
    """Answers every document but some."""
    from lm_eval.api.model import LM  # late: collecting need not wait for lm-eval

    class Model(LM):  # type: ignore[misc]  # lm-eval has no types
        def generate_until(self, requests: list[Any], **_: Any) -> list[str]:
            return [
                "nonsense" if place in wrong else ANSWERS[request.args[0]]
                for place, request in enumerate(requests)
            ]

        def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
            raise NotImplementedError

        def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
            raise NotImplementedError

    return Model()


def evaluate(folder: Path, wrong: Collection[int], *, keep_samples: bool = True) -> Path:
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
        tasks=[RECALL],
        task_manager=TaskManager(include_path=str(TASKS_DIRECTORY), include_defaults=False),
        limit=DOCUMENTS,
        bootstrap_iters=0,
    )
    samples = found.pop("samples")
    tracker.save_results_aggregated(results=found, samples=samples if keep_samples else None)
    if keep_samples:
        tracker.save_results_samples(task_name=RECALL, samples=samples[RECALL])
    return folder / "tiny-hybrid" / f"results_{tracker.date_id}.json"


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


def read(path: Path) -> Run:
    (run,) = read_foreign(parse(path, path.read_bytes()), ForeignInput())
    return run


def rights(path: Path) -> list[bool]:
    return [answer.correct for answer in read(path).trials[0].answers]


def share(path: Path) -> float:
    (sample,) = read(path).trials[0].samples
    assert sample.statistic == "mean"
    (value,) = sample.values
    return value


def samples_of(results: Path) -> Path:
    return results.with_name(
        results.name.replace("results_", f"samples_{RECALL}_").replace(".json", ".jsonl")
    )


@pytest.fixture
def ingest(tmp_path: Path) -> Callable[[Path], Result]:
    """Ingest into a store of this test's own."""
    store = ["--results", str(tmp_path / "results")]
    return lambda path: CliRunner().invoke(cli, ["ingest", str(path), *store])


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
        read(copies[1])


def test_answers_whose_score_the_results_do_not_have_are_refused(copies) -> None:
    told = json.loads(copies[0].read_text())
    scores = told["results"][RECALL]
    scores["exact_match,other"] = scores.pop("exact_match,stripped")
    copies[0].write_text(json.dumps(told))
    with pytest.raises(IngestError, match="exact_match,stripped: expected a value, found nothing"):
        read(copies[0])


@pytest.mark.parametrize("change", [{"filter": "stripped-too"}, {"doc_id": 1}])
def test_a_document_that_left_its_filter_or_is_there_twice_is_missed(copies, change) -> None:
    path = samples_of(copies[0])
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[5] |= change
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(IngestError, match=r"expected [36] documents, each through every of [12] f"):
        read(copies[0])


def test_without_a_date_in_their_names_evaluations_are_not_told_apart(copies) -> None:
    folder = copies[0].parent
    for letter, path in zip("ab", copies, strict=False):
        samples_of(path).rename(folder / f"samples_{letter}.jsonl")
        path.rename(folder / f"results_{letter}.json")
    assert rights(folder / "results_a.json") == rights(folder / "results_b.json") == []
    lone = folder / "samples_a.jsonl"
    with pytest.raises(IngestError, match=r"to which of results_a\.json, results_b\.json they bel"):
        companion(parse(lone, lone.read_bytes()))


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
    answers = read(copies[0]).trials[0].answers
    assert sum(answer.correct for answer in answers if answer.task == "recall") == 5
    assert sum(answer.correct for answer in answers if answer.task == "twin") == 6


def test_a_folder_of_whole_evaluations_is_taken_without_a_word(ingest, copies) -> None:
    answer = ingest(copies[0].parent)
    assert answer.exit_code == 0, answer.output
    assert "3 added, 0 already there, 0 not taken" in answer.output


def test_documents_that_no_results_count_are_named(ingest, copies) -> None:
    lone, cut = samples_of(copies[0]), samples_of(copies[1])
    copies[0].unlink()
    cut.write_text("".join(cut.read_text().splitlines(keepends=True)[:-1]))
    answer = ingest(copies[0].parent)
    assert answer.exit_code == 1
    assert f"{lone.name}: samples of lm-eval: expected {copies[0].name} beside" in answer.output
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
    assert ingest(copies[0]).exit_code == 0
    assert "already there" in ingest(copies[0]).output
    folder = shutil.copytree(copies[0].parent, copies[0].parent.with_name("again"))
    (folder / samples.name).write_text(text)
    answer = ingest(folder)
    assert answer.exit_code == 1
    assert "is there already as" in answer.output
    assert "remove that record to add the file again" in answer.output
