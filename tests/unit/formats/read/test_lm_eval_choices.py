"""Documents of several choices, as lm-eval itself writes them, held against their likelihoods."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hybridwatch.errors import IngestError
from hybridwatch.formats.read.foreign import ForeignInput, parse
from hybridwatch.formats.read.read import read_foreign

TASK = "colours"
DOCUMENTS = (("grass", 1), ("blood", 0), ("sky", 2))
COLOURS = ("red", "green", "blue")


def a_model() -> Any:
    """Takes everything for green, and each choice for what it is."""
    from lm_eval.api.model import LM  # late: collecting need not wait for lm-eval

    class Model(LM):  # type: ignore[misc]  # lm-eval has no types
        def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
            return [(-1.5 if "green" in one.args[1] else -3.25, False) for one in requests]

        def generate_until(self, requests: list[Any]) -> list[str]:
            raise NotImplementedError

        def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
            raise NotImplementedError

    return Model()


def evaluate(folder: Path, choices: tuple[str, ...], metrics: tuple[str, ...]) -> Path:
    """Evaluate as ``lm_eval --output_path --log_samples`` does, and give the file of results."""
    from lm_eval import simple_evaluate
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    rows = [{"question": question, "answer": answer} for question, answer in DOCUMENTS]
    data = folder / "colours.json"
    data.write_text(json.dumps(rows), encoding="utf-8")
    config = {
        "task": TASK,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}},
        "output_type": "multiple_choice",
        "test_split": "test",
        "doc_to_text": "{{question}} is",
        "doc_to_target": "answer",
        "doc_to_choice": list(choices),
        "metric_list": [{"metric": one, "aggregation": "mean"} for one in metrics],
    }
    tracker = EvaluationTracker(output_path=str(folder))
    tracker.general_config_tracker.log_experiment_args(
        "local-completions", "model=tiny-hybrid", None, None, False
    )
    found = simple_evaluate(
        model=a_model(),
        tasks=[config],
        task_manager=TaskManager(include_defaults=False),
        bootstrap_iters=0,
    )
    samples = found.pop("samples")
    tracker.save_results_aggregated(results=found, samples=samples)
    tracker.save_results_samples(task_name=TASK, samples=samples[TASK])
    return folder / "tiny-hybrid" / f"results_{tracker.date_id}.json"


def rights(path: Path) -> list[bool]:
    (run,) = read_foreign(parse(path, path.read_bytes()), ForeignInput())
    return [answer.correct for answer in run.trials[0].answers]


def change_first(results: Path, change: Mapping[str, Any]) -> None:
    (path,) = results.parent.glob("samples_*.jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rows[0] |= change
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return evaluate(tmp_path, COLOURS, ("acc",))


@pytest.mark.parametrize("metrics", [("acc",), ("acc", "acc_mutual_info")])
def test_lm_evals_own_scores_agree_with_its_likelihoods(tmp_path, metrics) -> None:
    assert rights(evaluate(tmp_path, COLOURS, metrics)) == [True, False, False]


def test_a_likelihood_that_speaks_for_another_choice_is_refused(results) -> None:
    change_first(results, {"filtered_resps": [["-1", "False"], ["-2", "False"], ["-3", "False"]]})
    wanted = "expected 0 (choice 0 is the likeliest, target 1), found 1"
    with pytest.raises(IngestError, match=wanted.replace("(", r"\(").replace(")", r"\)")):
        rights(results)


def test_choices_that_are_numbers_may_be_meant_by_the_target(tmp_path) -> None:
    """A target "1" is then a place or a text, and lm-eval does not write which."""
    results = evaluate(tmp_path, ("1", "green", "2"), ("acc",))
    change_first(results, {"filtered_resps": [["-1", "False"], ["-2", "False"], ["-3", "False"]]})
    assert rights(results)[0]


@pytest.mark.parametrize("responses", [["-1"], [["nan", "False"], ["-1", "False"]]])
def test_without_likelihoods_a_score_is_believed(results, responses) -> None:
    change_first(results, {"filtered_resps": responses})
    assert rights(results) == [True, False, False]
