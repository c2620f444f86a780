"""What lm-eval writes (``lm_eval/loggers/evaluation_tracker.py``).

There is ``results_<date>.json``, and with ``--log_samples`` a file of documents for each task.
All evaluations of a model lie in one folder, so the date in the names tells which files belong
together. Which documents belong to which task the results tell by a hash, and with it that nothing
is missing; the hash does not cover the responses, and is the same for every evaluation of a task.

Before 0.4.3 there were no hashes, before 0.4.2 no date, and before 0.4 no filters: a score was
called ``acc`` where it is ``acc,none`` now.
"""

import hashlib
import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from hybridwatch.errors import IngestError
from hybridwatch.formats.read.agreement import check_document, check_mean
from hybridwatch.formats.read.foreign import DocumentNode, ForeignDocument, ForeignRun, short
from hybridwatch.records.readings import strictest, version_read
from hybridwatch.records.run import UNKNOWN, Answer, Phase, Sample, Trial

_OURS: Final = "hybridwatch_"
_SHOWN: Final = 40
_TOOK: Final = "total_evaluation_time_seconds"
_SCORES_BEFORE_0_4: Final = ("acc", "exact_match", "em", "acc_norm")
"""Shares of documents that were answered right; the first that a task has is its accuracy."""
_ACCURACIES: Final = re.compile(
    r"acc(_\w+)?|accuracy|\w+_level_(strict|loose)_acc|em|\w+_match|pass@\d+"
)
"""The same since: an F1 or BLEU is a number from 0 to 1 as well, and no such share."""
_MODEL_ARGS: Final = ("pretrained", "model", "engine")
_DATE: Final = re.compile(r"_(\d{4}-\d\d-\d\dT\d\d[-:]\d\d[-:]\d\d(?:\.\d+)?)$")
"""At the end of the names of all files of one evaluation."""


def is_results(document: ForeignDocument) -> bool:
    """Whether this is a file of results."""
    root = document.root
    if "results" not in root or "versions" not in root:
        return False
    scores, versions = root.value["results"], root.value["versions"]
    if not isinstance(scores, dict) or not isinstance(versions, dict):
        return False
    return "n-samples" in root or any(isinstance(scores.get(task), dict) for task in versions)


def is_samples(document: ForeignDocument) -> bool:
    """Whether this is a file of documents."""
    first = document.nodes[0]
    return all(key in first for key in ("doc_hash", "prompt_hash", "target_hash", "filter"))


def why_alone(samples: ForeignDocument, folder: Sequence[ForeignDocument]) -> str | None:
    """Say why no results take these documents; ``None`` if some do."""
    date = _read_date(samples)
    beside = [one for one in folder if is_results(one) and _read_date(one) == date]
    if not beside:
        wanted = f"results_{date}.json beside them" if date else "their results beside them"
        return f"expected {wanted}, found none"
    if len(beside) > 1:
        names = ", ".join(one.path.name for one in beside)
        return f"expected a date in the name, which tells to which of {names} they belong"
    if _read_hash(samples) not in _task_hashes(beside[0].root).values():
        name = beside[0].path.name
        return f"expected the documents of a task by task_hashes of {name}, found others"
    return None


def read_results(document: ForeignDocument, folder: Sequence[ForeignDocument]) -> ForeignRun:
    """Read an evaluation.

    ``folder`` has every file next to the results; documents of other evaluations are left alone.
    """
    root = document.root
    kept = _find_samples(document, folder)
    answers: list[Answer] = []
    values: list[Sample] = []
    for task, scores in root.at("results").items():
        if _is_group(root, task):
            continue
        name = task.removeprefix(_OURS)
        found = _of_task(task, root, kept)
        if found is None:
            values.append(Sample(f"accuracy.{name}", (_share(scores),), "mean"))
            continue
        read = _answers(root, task, scores, found)
        answers += read
        values.append(Sample(f"accuracy.{name}", tuple(float(a.correct) for a in read)))
    if not values:
        raise root.at("results").wrong("at least one task")
    return _run(document, values, answers)


def _run(
    document: ForeignDocument, samples: Sequence[Sample], answers: Sequence[Answer]
) -> ForeignRun:
    root = document.root
    started = root.at("date").moment() if "date" in root else document.written_at
    seconds = _seconds(root)
    trial = Trial(
        0, 0, Phase.ACCURACY, started, seconds, samples=tuple(samples), answers=tuple(answers)
    )
    model = short(_model(root))
    version = root.value.get("lm_eval_version")
    return ForeignRun(
        tool=f"lm-eval {version or UNKNOWN}",
        scenario=f"lm-eval/{model}",
        workload=_workload(root, model),
        model_revision=str(_config(root).get("model_sha") or "") or None,
        started_at=started,
        finished_at=started + timedelta(seconds=seconds),
        trials=(trial,),
        revision=root.value.get("git_hash"),
        unknown=(
            *(() if version else ("harness.version",)),
            *(() if "date" in root else ("started_at", "finished_at")),
        ),
    )


def _seconds(root: DocumentNode) -> float:
    """lm-eval writes the time that it took as a text."""
    if _TOOK not in root:
        return 0.0
    node = root.at(_TOOK)
    try:
        return DocumentNode(float(str(node.value)), node.path).amount()
    except ValueError:
        raise node.wrong("seconds") from None


def _is_group(root: DocumentNode, task: str) -> bool:
    """Whether this is a mean over tasks that are here themselves."""
    groups = root.value.get("group_subtasks") or {}
    versions = root.at("versions").value
    return task in groups and versions.get(task, "N/A") == "N/A"


def _model(root: DocumentNode) -> str:
    config = _config(root)
    given = config.get("model_args")
    if isinstance(given, str):
        given = dict(part.split("=", 1) for part in given.split(",") if "=" in part)
    words = [given.get(key) for key in _MODEL_ARGS] if isinstance(given, dict) else []
    names = [root.value.get("model_name"), *words, config.get("model"), UNKNOWN]
    return next(str(name) for name in names if name)


def _config(root: DocumentNode) -> dict[str, Any]:
    # There is none from the scripts of its first year, which wrote results and versions alone.
    config = root.at("config") if "config" in root else DocumentNode({}, "config")
    if not isinstance(config.value, dict):
        raise config.wrong("an object")
    return config.value


def _workload(root: DocumentNode, model: str) -> dict[str, Any]:
    config = _config(root)
    return {
        "model": model,
        "tasks": root.at("versions").value,
        "n-shot": root.value.get("n-shot", config.get("num_fewshot")),
        "limit": config.get("limit"),
        "gen_kwargs": config.get("gen_kwargs"),
        "chat_template": root.value.get("chat_template_sha"),
        "system_instruction": root.value.get("system_instruction_sha"),
    }


def _find_samples(
    results: ForeignDocument, folder: Sequence[ForeignDocument]
) -> list[tuple[str, ForeignDocument]]:
    """Find the documents of an evaluation, each file with the hash over it.

    Where a name was changed and has no date, there is no telling which of several evaluations a
    file belongs to; then there are none.
    """
    date = _read_date(results)
    if date is None and sum(_read_date(one) is None for one in folder if is_results(one)) > 1:
        return []
    found = (one for one in folder if is_samples(one) and _read_date(one) == date)
    return [(_read_hash(samples), samples) for samples in found]


def _of_task(
    task: str, root: DocumentNode, kept: Sequence[tuple[str, ForeignDocument]]
) -> ForeignDocument | None:
    wanted = _task_hashes(root).get(task)
    found = [samples for task_hash, samples in kept if task_hash == wanted]
    if len(found) > 1:  # two tasks ask the same and score it differently
        named = [one for one in found if _DATE.sub("", one.path.stem) == f"samples_{task}"]
        if len(named) != 1:
            names = ", ".join(one.path.name for one in found)
            raise IngestError(
                f"task_hashes.{task}: expected one file of these documents, found {names}"
            )
        found = named
    return found[0] if found else None


def _read_date(document: ForeignDocument) -> str | None:
    found = _DATE.search(document.path.stem)
    return found[1].replace(":", "-") if found else None


def _task_hashes(root: DocumentNode) -> dict[str, str]:
    if "task_hashes" not in root:
        return {}  # no documents were kept
    return {task: node.text() for task, node in root.at("task_hashes").items()}


def _read_hash(samples: ForeignDocument) -> str:
    keys = ("doc_hash", "prompt_hash", "target_hash")
    try:
        words = (node.at(key).text() for node in samples.nodes for key in keys)
        return hashlib.sha256("".join(words).encode()).hexdigest()
    except IngestError as error:
        raise IngestError(f"{samples.path.name}: {error}") from error


def _share(scores: DocumentNode) -> float:
    """The score of a task whose documents are not at hand, by its strictest filter."""
    numbers = {key: node for key, node in scores.items() if isinstance(node.value, int | float)}
    found = {
        key: node
        for key, node in numbers.items()
        if "," in key and "_stderr" not in key and _ACCURACIES.fullmatch(key.partition(",")[0])
    }
    found = found or {key: numbers[key] for key in _SCORES_BEFORE_0_4 if key in numbers}
    if not found:
        wanted = "a share of right answers, such as exact_match,strict-match or acc"
        names = ", ".join(key for key in numbers if "_stderr" not in key) or "none"
        raise IngestError(f"{scores.path}: expected {wanted}, found {names}")
    node = found[strictest(list(found))]
    share = node.number()
    if not 0 <= share <= 1:
        raise node.wrong("a share from 0 to 1")
    return share


def _answers(
    root: DocumentNode, task: str, scores: DocumentNode, samples: ForeignDocument
) -> list[Answer]:
    """Read documents through one filter, as ``measurement.accuracy.harness`` does."""
    filters = list(dict.fromkeys(node.at("filter").text() for node in samples.nodes))
    chosen = strictest(filters)
    version = version_read(str(root.at("versions", task).value), filters)
    config = root.value.get("configs", {}).get(task) or {}
    rows = [node for node in samples.nodes if node.at("filter").value == chosen]
    metric = rows[0].at("metrics").first("metric").text()
    try:
        _check_whole(samples, filters, rows)
        for row in rows:
            check_document(row, metric, config)
        answers = [_answer(task.removeprefix(_OURS), version, metric, row) for row in rows]
    except IngestError as error:
        raise IngestError(f"{samples.path.name}: {error}") from error
    check_mean(scores, f"{metric},{chosen}", [answer.correct for answer in answers], config)
    return answers


def _check_whole(
    samples: ForeignDocument, filters: Sequence[str], rows: Sequence[DocumentNode]
) -> None:
    """Refuse documents that are there twice, or not through every filter.

    The hash that the results hold does not cover the names of the filters.
    """
    wanted = len(samples.nodes) / len(filters)
    found = len({row.at("doc_id").count() for row in rows})
    if not found == len(rows) == wanted:
        name = rows[0].at("filter").value
        raise IngestError(
            f"expected {wanted:g} documents, each through every of {len(filters)} filters, "
            f"found {found} through {name[:_SHOWN]}"
        )


def _answer(task: str, version: str, metric: str, row: DocumentNode) -> Answer:
    score = row.at(metric)
    if score.number() not in {0.0, 1.0}:
        raise score.wrong("right (1) or wrong (0)")
    return Answer(
        task=task,
        task_version=version,
        doc_id=row.at("doc_id").count(),
        doc_hash=row.at("doc_hash").text(),
        prompt_hash=row.at("prompt_hash").text(),
        target_hash=row.at("target_hash").text(),
        prompt=str(row.at("arguments", "gen_args_0", "arg_0").value),
        target=str(row.at("target").value),
        response=str(row.at("filtered_resps").first("response").value),
        correct=score.value == 1,
    )
