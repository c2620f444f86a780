"""What lm-eval writes (``lm_eval/loggers/evaluation_tracker.py``).

There is ``results_<date>.json``, and with ``--log_samples`` a file of documents for each task.
Which documents belong to which task is not in their file; the results hold a hash over them, and
so tell more than the names of the files would: that nothing is missing.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from hybridwatch.errors import IngestError
from hybridwatch.ingest.agreement import check_document, check_mean
from hybridwatch.ingest.document import Document, Node
from hybridwatch.ingest.foreign import Given, Told, after, run_of, short
from hybridwatch.record.evaluation import strictest, version_read
from hybridwatch.record.run import UNKNOWN, Answer, Phase, Run, Sample, Trial

FORMAT: Final = "lm-eval"
_OURS: Final = "hybridwatch_"


def is_results(document: Document) -> bool:
    """Whether this is a file of results."""
    root = Node(document.root)
    return all(key in root for key in ("results", "versions", "configs", "n-samples"))


def is_samples(document: Document) -> bool:
    """Whether this is a file of documents."""
    first = Node(document.lines[0])
    return all(key in first for key in ("doc_hash", "prompt_hash", "target_hash", "filter"))


def read_results(document: Document, given: Given, beside: Sequence[Document]) -> Run:
    """Read an evaluation.

    Args:
        document: The results.
        given: As for every format.
        beside: Files of documents in the same folder; those of other evaluations are left alone.

    Raises:
        IngestError: A task's documents are not those that were counted, or its score is no share.
    """
    root = Node(document.root)
    by_hash = {_hash_of(samples): samples for samples in beside}
    answers: list[Answer] = []
    values: list[Sample] = []
    for task, scores in root.at("results").items():
        if task in root.value.get("group_subtasks", {}) and task not in root.at("versions"):
            continue  # a group is a mean over tasks that are here themselves
        name = task.removeprefix(_OURS)
        found = by_hash.get(root.value.get("task_hashes", {}).get(task, ""))
        if found is None:
            values.append(Sample(f"accuracy.{name}", (_share(scores),), "mean"))
            continue
        read = _answers(root, task, scores, found)
        answers += read
        values.append(Sample(f"accuracy.{name}", tuple(float(a.correct) for a in read)))
    if not values:
        raise root.at("results").wrong("at least one task")
    return _run(document, root, given, values, answers)


def _run(
    document: Document,
    root: Node,
    given: Given,
    samples: Sequence[Sample],
    answers: Sequence[Answer],
) -> Run:
    started = root.at("date").moment()
    seconds = float(str(root.value.get("total_evaluation_time_seconds") or 0))
    trial = Trial(
        0, 0, Phase.ACCURACY, started, seconds, samples=tuple(samples), answers=tuple(answers)
    )
    model = short(str(root.value.get("model_name") or root.at("config", "model").value))
    version = root.value.get("lm_eval_version")
    told = Told(
        format=FORMAT,
        tool=f"lm-eval {version or UNKNOWN}",
        scenario=f"lm-eval/{model}",
        asked=_asked(root, model),
        started_at=started,
        finished_at=after(started, seconds),
        trials=(trial,),
        revision=root.value.get("git_hash"),
        unknown=() if version else ("harness.version",),
    )
    return run_of(document, told, given)


def _asked(root: Node, model: str) -> dict[str, Any]:
    config = root.at("config").value
    return {
        "model": model,
        "tasks": root.at("versions").value,
        "n-shot": root.value.get("n-shot"),
        "limit": config.get("limit"),
        "gen_kwargs": config.get("gen_kwargs"),
        "chat_template": root.value.get("chat_template_sha"),
        "system_instruction": root.value.get("system_instruction_sha"),
    }


def _hash_of(samples: Document) -> str:
    rows = (node.value for node in samples.nodes)
    words = (row["doc_hash"] + row["prompt_hash"] + row["target_hash"] for row in rows)
    return hashlib.sha256("".join(words).encode()).hexdigest()


def _share(scores: Node) -> float:
    """The score of a task whose documents are not at hand, by its strictest filter."""
    found = {
        key: node
        for key, node in scores.items()
        if "," in key and "_stderr" not in key and isinstance(node.value, int | float)
    }
    if not found:
        raise scores.wrong("a score such as exact_match,strict-match")
    node = found[strictest(list(found))]
    share = node.number()
    if not 0 <= share <= 1:
        raise node.wrong("a share from 0 to 1")
    return share


def _answers(root: Node, task: str, scores: Node, samples: Document) -> list[Answer]:
    """Read documents through one filter, as a run of our own does (``quality.answers``)."""
    filters = list(dict.fromkeys(node.at("filter").text() for node in samples.nodes))
    chosen = strictest(filters)
    version = version_read(str(root.at("versions", task).value), filters)
    config = root.value.get("configs", {}).get(task) or {}
    rows = [node for node in samples.nodes if node.at("filter").value == chosen]
    metric = _metric_of(rows[0])
    try:
        for row in rows:
            check_document(row, metric, config)
        answers = [_answer(task.removeprefix(_OURS), version, metric, row) for row in rows]
    except IngestError as error:
        raise IngestError(f"{samples.path.name}: {error}") from error
    check_mean(scores, f"{metric},{chosen}", [answer.correct for answer in answers], config)
    return answers


def _metric_of(row: Node) -> str:
    for metric in row.at("metrics").each():
        return metric.text()
    raise row.at("metrics").wrong("at least one metric")


def _answer(task: str, version: str, metric: str, row: Node) -> Answer:
    score = row.at(metric)
    if score.number() not in {0.0, 1.0}:
        raise score.wrong("right (1) or wrong (0)")
    return Answer(
        task=task,
        task_version=version,
        doc_id=int(row.at("doc_id").number()),
        doc_hash=row.at("doc_hash").text(),
        prompt_hash=row.at("prompt_hash").text(),
        target_hash=row.at("target_hash").text(),
        prompt=str(row.at("arguments", "gen_args_0", "arg_0").value),
        target=str(row.at("target").value),
        response=_response(row),
        correct=score.value == 1,
    )


def _response(row: Node) -> str:
    for said in row.at("filtered_resps").each():
        return str(said.value)
    raise row.at("filtered_resps").wrong("at least one response")
