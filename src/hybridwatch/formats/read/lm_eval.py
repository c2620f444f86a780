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
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple

from hybridwatch.errors import IngestError
from hybridwatch.formats.read.agreement import check_document, check_mean
from hybridwatch.formats.read.document import DocumentNode, ForeignDocument, read_folder
from hybridwatch.formats.read.foreign import ForeignRun, short
from hybridwatch.records.readings import strictest, version_read
from hybridwatch.records.run import UNKNOWN, Answer, Phase, Sample, Trial

_OURS: Final = "hybridwatch_"
_SHOWN: Final = 40
_NAMES: Final = 10
_TOOK: Final = "total_evaluation_time_seconds"
_SCORES_BEFORE_0_4: Final = ("acc", "exact_match", "em", "acc_norm")
"""Shares of documents that were answered right; the first that a task has is its accuracy."""
_ACCURACIES: Final = re.compile(r"(\w+_)?acc(_\w+)?|accuracy|em|\w+_match(_\w+)?|pass(@|_at_)\d+")
"""The same since: an F1 or BLEU is a number from 0 to 1 as well, and no such share."""
_SEEDS: Final = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")
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
    return document.nodes[0].has("doc_hash", "prompt_hash", "target_hash", "filter")


def why_alone(samples: ForeignDocument, folder: Sequence[ForeignDocument]) -> str | None:
    """Say why no results take these documents; ``None`` if some do."""
    date = _read_date(samples)
    beside = [one for one in folder if is_results(one) and _read_date(one) == date]
    if not beside:
        wanted = f"results_{date}.json next to them" if date else "their results next to them"
        return f"expected {wanted}, found none"
    if len(beside) > 1:
        names = ", ".join(one.path.name for one in beside)
        return f"expected a date in the name, which tells to which of {names} they belong"
    if _read_hash(samples) not in _task_hashes(beside[0].root).values():
        name = beside[0].path.name
        return f"expected the documents of a task by task_hashes of {name}, found others"
    return None


class TaskScore(NamedTuple):
    """What can be judged of a task: a value a document, or with ``statistic`` the score alone."""

    values: Sequence[float] = ()
    statistic: str | None = None
    answers: Sequence[Answer] = ()
    left_out: str | None = None


def read_results(document: ForeignDocument) -> Iterator[ForeignRun]:
    """Read an evaluation; documents of other evaluations in the folder are left alone."""
    root = document.root
    kept = _find_samples(document, read_folder(document.path.parent))
    found = {
        f"accuracy.{task.removeprefix(_OURS)}": (
            _read_task(task, root, scores, _of_task(task, root, kept))
        )
        for task, scores in root.at("results").items()
        # Else it is a mean over tasks that are here themselves.
        if not (root.value.get("group_subtasks") or {}).get(task)
    }
    left_out = {metric: score.left_out for metric, score in found.items() if score.left_out}
    if not any(score.values for score in found.values()):
        raise IngestError(next(iter(left_out.values()), "results: expected at least one task"))
    yield _run(document, found, left_out)


def _run(
    document: ForeignDocument, scores: Mapping[str, TaskScore], left_out: Mapping[str, str]
) -> ForeignRun:
    root = document.root
    samples = [
        Sample(metric, tuple(score.values), score.statistic)
        for metric, score in scores.items()
        if score.values
    ]
    answers = [answer for score in scores.values() for answer in score.answers]
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
        left_out=left_out,
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
    # What older versions do not write stays out, so that the digest of their files stays.
    later = {
        "fewshot_as_multiturn": root.value.get("fewshot_as_multiturn") or None,
        **{seed: config.get(seed) for seed in _SEEDS},
    }
    return {
        "model": model,
        "tasks": root.at("versions").value,
        "n-shot": root.value.get("n-shot", config.get("num_fewshot")),
        "limit": config.get("limit"),
        "gen_kwargs": config.get("gen_kwargs") or None,
        "chat_template": root.value.get("chat_template_sha"),
        "system_instruction": root.value.get("system_instruction_sha"),
        **{key: value for key, value in later.items() if value is not None},
    }


def _find_samples(
    results: ForeignDocument, folder: Sequence[ForeignDocument]
) -> list[tuple[str, ForeignDocument]]:
    """Find the documents of an evaluation with a hash over each; none if it is not known whose."""
    date = _read_date(results)
    if date is None and sum(_read_date(one) is None for one in folder if is_results(one)) > 1:
        return []
    found = (one for one in folder if is_samples(one) and _read_date(one) == date)
    return [(_read_hash(samples), samples) for samples in found]


def _of_task(
    task: str, root: DocumentNode, kept: Sequence[tuple[str, ForeignDocument]]
) -> ForeignDocument | None:
    hashes = _task_hashes(root)
    found = [samples for task_hash, samples in kept if task_hash == hashes.get(task)]
    if [*hashes.values()].count(hashes.get(task, "")) < 2:
        return found[0] if found else None
    # Several tasks put the same questions and score them differently.
    named = [one for one in found if _DATE.sub("", one.path.stem) == f"samples_{task}"]
    if len(found) > 1 and len(named) != 1:
        names = ", ".join(one.path.name for one in found)
        raise IngestError(
            f"task_hashes.{task}: expected one file of these documents, found {names}"
        )
    return named[0] if named else None


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


def _read_task(
    task: str, root: DocumentNode, scores: DocumentNode, samples: ForeignDocument | None
) -> TaskScore:
    """Read a task by its documents; where these are not right or wrong, by its score alone."""
    asked, scored = _count_documents(root, task)
    if samples is None:
        return _read_mean(scores, _describe_unscored(scored, asked))
    filters = list(dict.fromkeys(node.at("filter").text() for node in samples.nodes))
    rows = [node for node in samples.nodes if node.at("filter").value == strictest(filters)]
    metric = _choose_metric(rows)
    marked = [row for row in rows if metric in row]
    marks = [row.value[metric] for row in marked]
    config = root.value.get("configs", {}).get(task) or {}
    odd = next((row.at(metric) for row in marked if row.value[metric] not in (0, 1)), None)
    version = version_read(str(root.at("versions", task).value), filters)
    try:
        _check_whole(samples, filters, rows)
        answers = [] if odd else [_answer(task, version, metric, row, config) for row in marked]
    except IngestError as error:
        raise IngestError(f"{samples.path.name}: {error}") from error
    if not odd or (_is_accuracy(metric) and all(isinstance(mark, int | float) for mark in marks)):
        check_mean(scores, f"{metric},{strictest(filters)}", marks, config)
    unscored = _describe_unscored(len(marks), max(asked, len(rows)))
    if answers:
        return TaskScore([float(mark) for mark in marks], None, answers, unscored)
    if odd is None:
        return _read_mean(scores, unscored)
    named = f"{samples.path.name}: {odd.wrong('right (1) or wrong (0)')}"
    return _read_mean(scores, unscored, f"{named}; the mean alone is taken")


def _read_mean(scores: DocumentNode, unscored: str | None, why: str | None = None) -> TaskScore:
    """Read a score alone; ``why`` says what is wrong with its documents, if they are at hand."""
    if unscored:
        return TaskScore(left_out=f"{scores.path}: {unscored}; a mean over these is not taken")
    try:
        return TaskScore([_share(scores)], "mean", left_out=why)
    except IngestError as error:
        return TaskScore(left_out=str(error))


def _count_documents(root: DocumentNode, task: str) -> tuple[int, int]:
    """Count the documents that were put, and those that have a score; 0 where it does not say."""
    if "n-samples" not in root or task not in root.at("n-samples"):
        return 0, 0
    counts = root.at("n-samples", task)
    scored = counts.at("effective").count()
    is_limited = _config(root).get("limit") is not None
    return scored if is_limited else counts.at("original").count(), scored


def _describe_unscored(scored: int, asked: int) -> str | None:
    return f"{scored} of {asked} documents have a score" if scored < asked else None


def _is_accuracy(metric: str) -> bool:
    return _ACCURACIES.fullmatch(metric) is not None


def _choose_metric(rows: Sequence[DocumentNode]) -> str:
    """Choose by which metric documents are right or wrong; a document may lack some."""
    listed = [row.at("metrics").each() for row in rows]
    names = list(dict.fromkeys(name.text() for metrics in listed for name in metrics))
    return strictest([name for name in names if _is_accuracy(name)] or names or [""])


def _share(scores: DocumentNode) -> float:
    """The score of a task whose documents are not at hand, by its strictest filter."""
    numbers = {key: node for key, node in scores.items() if isinstance(node.value, int | float)}
    found = [
        key
        for key in numbers
        if "," in key and "_stderr" not in key and _is_accuracy(key.partition(",")[0])
    ]
    found = found or [key for key in _SCORES_BEFORE_0_4 if key in numbers]
    if not found:
        wanted = "a share of right answers, such as exact_match,strict-match or acc"
        names = [key for key in numbers if "_stderr" not in key and key != "sample_len"]
        shown = ", ".join(names[:_NAMES]) or "none"
        raise IngestError(f"{scores.path}: expected {wanted}, found {shown}")
    node = numbers[strictest(found)]
    share = node.number()
    if not 0 <= share <= 1:
        raise node.wrong("a share from 0 to 1")
    return share


def _check_whole(
    samples: ForeignDocument, filters: Sequence[str], rows: Sequence[DocumentNode]
) -> None:
    """Refuse documents that are there twice, or not through every filter: no hash says so."""
    wanted = len(samples.nodes) / len(filters)
    found = len({row.at("doc_id").count() for row in rows})
    if not found == len(rows) == wanted:
        name = rows[0].at("filter").value
        raise IngestError(
            f"expected {wanted:g} documents, each through every of {len(filters)} filters, "
            f"found {found} through {name[:_SHOWN]}"
        )


def _answer(
    task: str, version: str, metric: str, row: DocumentNode, config: Mapping[str, Any]
) -> Answer:
    check_document(row, metric, config)
    return Answer(
        task=task.removeprefix(_OURS),
        task_version=version,
        doc_id=row.at("doc_id").count(),
        doc_hash=row.at("doc_hash").text(),
        prompt_hash=row.at("prompt_hash").text(),
        target_hash=row.at("target_hash").text(),
        prompt=str(row.at("arguments", "gen_args_0", "arg_0").value),
        target=str(row.at("target").value),
        response=str(row.at("filtered_resps").first("response").value),
        correct=row.value[metric] == 1,
    )
