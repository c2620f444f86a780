"""Evaluations of lm-eval with tasks that are not right or wrong document by document."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from hybridwatch.errors import IngestError
from hybridwatch.records.run import Run, Source
from tests.command_line import run_verb
from tests.unit.formats.read.reading import only

Documents = Sequence[Mapping[str, Any]]
"""The scores of each document, by metric."""
RIGHT: Documents = [{"acc": 1.0}, {"acc": 0.0}, {"acc": 1.0}, {"acc": 1.0}]
SHARES: Documents = [{"acc": share} for share in (0.25, 0.5, 0.0, 0.25)]
GROUP: dict[str, Any] = {"group_subtasks": {"both": ["a", "b"]}}


def write_documents(path: Path, documents: Documents) -> str:
    """Write a file of samples, and give the hash by which results name it."""
    rows = [
        {
            "doc_id": number,
            "target": "",
            "arguments": {"gen_args_0": {"arg_0": f"question {number}"}},
            "filtered_resps": ["answer"],
            "filter": "none",
            "metrics": list(scores),
            **{key: f"{key} {path.name} {number}" for key in ("doc_hash", "prompt_hash")},
            "target_hash": "",
            **scores,
        }
        for number, scores in enumerate(documents)
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    words = "".join(row["doc_hash"] + row["prompt_hash"] for row in rows)
    return hashlib.sha256(words.encode()).hexdigest()


def write_evaluation(
    folder: Path,
    scores: Mapping[str, Mapping[str, Any]],
    documents: Mapping[str, Documents] | None = None,
    **more: Any,
) -> Path:
    """Write what lm-eval 0.4.13 does: scores of tasks, and documents of some of them."""
    folder.mkdir(exist_ok=True)
    hashes = {
        task: write_documents(folder / f"samples_{task}_2026-11-25T13-47-35.6.jsonl", some)
        for task, some in (documents or {}).items()
    }
    path = folder / "results_2026-11-25T13-47-35.6.json"
    told = {
        "results": {task: {"name": task, "sample_len": 4, **some} for task, some in scores.items()},
        "versions": dict.fromkeys(scores, 1.0),
        "config": {"model": "vllm", "limit": None, "gen_kwargs": {}},
        "date": 1795614455.0,
        "model_name": "acme/tiny",
        "task_hashes": hashes,
    }
    path.write_text(json.dumps(told | more), encoding="utf-8")
    return path


def values(run: Run) -> dict[str, tuple[float, ...]]:
    return {
        f"{sample.metric} {sample.statistic or ''}".strip(): sample.values
        for sample in run.trials[0].samples
    }


def source(run: Run) -> Source:
    assert run.source is not None
    return run.source


def digest(folder: Path, **more: Any) -> str:
    return only(write_evaluation(folder, {"a": {"acc,none": 0.5}}, **more)).scenario.digest


def test_true_and_false_are_right_and_wrong(tmp_path) -> None:
    """As ifeval writes them, beside lists of the instructions that were followed."""
    documents = [
        {"prompt_level_strict_acc": right, "inst_level_strict_acc": [right, True]}
        for right in (True, False, True, True)
    ]
    scores = {"prompt_level_strict_acc,none": 0.75, "inst_level_strict_acc,none": 0.875}
    run = only(write_evaluation(tmp_path, {"ifeval": scores}, {"ifeval": documents}))
    assert values(run) == {"accuracy.ifeval": (1.0, 0.0, 1.0, 1.0)}
    assert [answer.correct for answer in run.trials[0].answers] == [True, False, True, True]
    assert source(run).left_out == {}


def test_of_documents_that_are_shares_the_mean_alone_is_taken(tmp_path) -> None:
    """As truthfulqa_mc2 writes them."""
    scores = {"mc2": {"acc,none": 0.25}, "plain": {"acc,none": 0.75}}
    run = only(write_evaluation(tmp_path, scores, {"mc2": SHARES, "plain": RIGHT}))
    assert values(run) == {"accuracy.mc2 mean": (0.25,), "accuracy.plain": (1.0, 0.0, 1.0, 1.0)}
    assert {answer.task for answer in run.trials[0].answers} == {"plain"}
    assert source(run).left_out == {
        "accuracy.mc2": "samples_mc2_2026-11-25T13-47-35.6.jsonl: line 1.acc: expected right (1) "
        "or wrong (0), found 0.25; the mean alone is taken"
    }


def test_shares_that_do_not_have_the_mean_of_the_results_are_refused(tmp_path) -> None:
    path = write_evaluation(tmp_path, {"mc2": {"acc,none": 0.75}}, {"mc2": SHARES})
    with pytest.raises(
        IngestError, match=r"mc2\.acc,none: expected 0\.25, the mean of its 4 docum"
    ):
        only(path)


PERPLEXITY: Mapping[str, Any] = {"word_perplexity,none": 8.5, "word_perplexity_stderr,none": "N/A"}


@pytest.mark.parametrize("documents", [{}, {"wiki": [{"word_perplexity": [-0.3, 3]}] * 4}])
def test_a_task_without_an_accuracy_is_left_out_by_its_name(tmp_path, documents) -> None:
    scores = {"a": {"acc,none": 0.75}, "wiki": PERPLEXITY, "odd": {"acc,none": 75.0}}
    run = only(write_evaluation(tmp_path, scores, documents))
    assert values(run) == {"accuracy.a mean": (0.75,)}
    assert source(run).left_out == {
        "accuracy.wiki": "results.wiki: expected a share of right answers, such as "
        "exact_match,strict-match or acc, found word_perplexity,none",
        "accuracy.odd": "results.odd.acc,none: expected a share from 0 to 1, found 75.0",
    }


def test_an_evaluation_of_which_nothing_can_be_judged_is_refused(tmp_path) -> None:
    with pytest.raises(
        IngestError, match=r"results\.wiki: expected a share of .*, found word_perp"
    ):
        only(write_evaluation(tmp_path, {"wiki": PERPLEXITY}))


@pytest.mark.parametrize(
    "metric",
    ["pass_at_1", "pass@1", "acc_norm", "bleu_acc", "exact_match_B1", "em", "accuracy"],
)
def test_accuracies_of_tasks_that_lm_eval_ships_are_known(tmp_path, metric) -> None:
    path = write_evaluation(tmp_path, {"a": {"bleu_max,none": 0.125, f"{metric},none": 0.5}})
    assert values(only(path)) == {"accuracy.a mean": (0.5,)}


def test_an_accuracy_goes_before_what_a_document_lists_first(tmp_path) -> None:
    """As truthfulqa_gen lists them."""
    documents = [{"bleu_max": 27.5, "bleu_acc": right} for right in (1, 0, 0, 1)]
    scores = {"bleu_max,none": 27.5, "bleu_acc,none": 0.5}
    run = only(write_evaluation(tmp_path, {"gen": scores}, {"gen": documents}))
    assert values(run) == {"accuracy.gen": (1.0, 0.0, 0.0, 1.0)}


@pytest.mark.parametrize("version", ["N/A", "2", 1.0])
@pytest.mark.parametrize("scores", [{}, {"acc,none": 0.625, "sample_count": {"acc,none": 8}}])
def test_a_group_is_no_task_whatever_its_version(tmp_path, version, scores) -> None:
    tasks = {"a": {"acc,none": 0.75}, "b": {"acc,none": 0.5}}
    versions = {"a": 1.0, "b": 1.0, "both": version}
    path = write_evaluation(tmp_path, tasks | {"both": scores}, versions=versions, **GROUP)
    assert set(values(only(path))) == {"accuracy.a mean", "accuracy.b mean"}
    assert source(only(path)).left_out == {}


COUNTS: dict[str, Any] = {"n-samples": {"a": {"original": 4, "effective": 3}}}


@pytest.mark.parametrize("unscored", [{}, {"other": 1.0}, {"acc": None}])
def test_documents_without_a_score_are_counted_and_the_others_taken(tmp_path, unscored) -> None:
    scores = {"a": {"acc,none": 1.0}}
    documents = {"a": [RIGHT[0], unscored, RIGHT[2], RIGHT[3]]}
    run = only(write_evaluation(tmp_path, scores, documents))
    assert values(run) == {"accuracy.a": (1.0, 1.0, 1.0)}
    assert [answer.doc_id for answer in run.trials[0].answers] == [0, 2, 3]
    assert source(run).left_out == {"accuracy.a": "3 of 4 documents have a score"}


def test_a_mean_over_some_documents_is_not_taken(tmp_path) -> None:
    scores = {"a": {"acc,none": 1.0}, "b": {"acc,none": 0.5}}
    run = only(write_evaluation(tmp_path, scores, **COUNTS))
    assert values(run) == {"accuracy.b mean": (0.5,)}
    assert source(run).left_out == {
        "accuracy.a": "results.a: 3 of 4 documents have a score; a mean over these is not taken"
    }


def test_a_mean_over_as_many_documents_as_were_wanted_is_taken(tmp_path) -> None:
    config = {"model": "vllm", "limit": 3.0}
    run = only(write_evaluation(tmp_path, {"a": {"acc,none": 1.0}}, config=config, **COUNTS))
    assert values(run) == {"accuracy.a mean": (1.0,)}


def test_documents_are_not_those_of_another_task_that_asks_the_same(tmp_path) -> None:
    scores = {"a": {"acc,none": 0.75}, "b": {"acc,none": 0.5}}
    path = write_evaluation(tmp_path, scores, {"a": RIGHT})
    told = json.loads(path.read_text())
    told["task_hashes"]["b"] = told["task_hashes"]["a"]
    path.write_text(json.dumps(told))
    assert values(only(path)) == {"accuracy.a": (1.0, 0.0, 1.0, 1.0), "accuracy.b mean": (0.5,)}


@pytest.mark.parametrize(
    "more",
    [
        {"fewshot_as_multiturn": True},
        {"chat_template_sha": "ab"},
        {"system_instruction_sha": "ab"},
        {"n-shot": {"a": 5}},
        *(
            {"config": {"model": "vllm", "limit": None, "gen_kwargs": {}, key: value}}
            for key, value in (
                ("fewshot_seed", 7),
                ("random_seed", 0),
                ("numpy_seed", 7),
                ("torch_seed", 7),
                ("limit", 100),
                ("gen_kwargs", {"temperature": 1}),
            )
        ),
    ],
    ids=str,
)
def test_other_questions_are_another_load(tmp_path, more) -> None:
    assert digest(tmp_path, **more) != digest(tmp_path)


@pytest.mark.parametrize(
    "more",
    [{"fewshot_as_multiturn": None}, {"fewshot_as_multiturn": False}, {"config": {"limit": None}}],
    ids=str,
)
def test_the_same_questions_are_one_load(tmp_path, more) -> None:
    assert digest(tmp_path, **more) == digest(tmp_path)


@pytest.fixture
def call(tmp_path: Path) -> Callable[..., Result]:
    """Call a command on a store of this test's own."""
    store = ["--results", str(tmp_path / "store")]
    return lambda *words, status=None: run_verb(*words, *store, status=status)


def ingest(call: Callable[..., Result], path: Path, build: str) -> Any:
    answer = call("ingest", path.parent, "--testbed", "lab", "--build", build, "--json", status=0)
    (taken,) = json.loads(answer.stdout)["taken"]
    return taken


def test_two_evaluations_are_judged_by_what_was_taken_and_say_what_was_not(tmp_path, call) -> None:
    """Sixteen answers lost of forty; shares, a perplexity and an unscored document beside them."""
    told = []
    for build, lost in (("old", 0), ("new", 16)):
        documents: dict[str, Documents] = {
            "a": [{"acc": number >= lost} for number in range(40)],
            "mc2": SHARES,
            "some": [*RIGHT[: 2 + (build == "old")], {}],
        }
        scores = {
            "a": {"acc,none": 1 - lost / 40},
            "mc2": {"acc,none": 0.25},
            "some": {"acc,none": 2 / 3 if build == "old" else 0.5},
            "wiki": PERPLEXITY,
        }
        told.append(ingest(call, write_evaluation(tmp_path / build, scores, documents), build))
    assert list(told[1]["left_out"]) == ["accuracy.mc2", "accuracy.some", "accuracy.wiki"]
    runs = [one["run_id"] for one in told]
    report = json.loads(call("compare", *runs, "--json").stdout)
    found = {one["metric"]: one for one in report["comparisons"]}
    assert {metric: one["verdict"] for metric, one in found.items()} == {
        "accuracy.a": "regression",
        "accuracy.mc2": "inconclusive",
        "accuracy.some": "not comparable",
    }
    wanted = "Left out when the contender was ingested: 2 of 3 documents have a score."
    assert wanted in found["accuracy.some"]["doubts"]
    assert any("found 0.25; the mean alone" in one for one in found["accuracy.mc2"]["doubts"])
    gate = call("gate", *runs, status=1)
    assert "Answers were lost: accuracy.a -40.0 points (16 lost and none won of 40)" in gate.output


def test_ingest_names_what_it_leaves_out_in_a_line(tmp_path, call) -> None:
    scores = {"a": {"acc,none": 0.5}, "wiki\x1b[2J": PERPLEXITY}
    answer = call("ingest", write_evaluation(tmp_path / "in", scores), status=0)
    (line,) = answer.stderr.splitlines()
    assert ": left out: accuracy.wiki" in line
    assert "\x1b" not in line
    assert line.endswith("or acc, found word_perplexity,none")
