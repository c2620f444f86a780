"""Reads lm-eval's sample log into answers, and refuses one that is not whole."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hybridwatch.errors import MeasurementError
from hybridwatch.records.readings import strictest, version_read
from hybridwatch.records.run import Answer

NO_TEXT: Final = "<<hybridwatch: the engine answered null>>"
"""What lm-eval has to write for an answer that is ``null``; by itself it writes an empty one,
and a broken answer would pass for a wrong one."""

Sample = Mapping[str, Any]


def read_answers(
    evaluation: Mapping[str, Any], tasks: Mapping[str, str], documents: int
) -> tuple[Answer, ...]:
    """Read every document of every task.

    Of a task that logs one response through several filters the strictest counts, and its name
    becomes part of the task version (``records.readings``).

    Raises:
        MeasurementError: A document is missing, or the log is not what lm-eval writes.
    """
    try:
        return tuple(
            answer
            for name, eval_name in tasks.items()
            for answer in _task_answers(name, eval_name, evaluation, documents)
        )
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise MeasurementError(f"lm-eval's samples cannot be read: {error!r}") from error


def _task_answers(
    name: str, eval_name: str, evaluation: Mapping[str, Any], documents: int
) -> Iterator[Answer]:
    held = evaluation["n-samples"][eval_name]["original"]
    if held < documents:
        raise MeasurementError(f"task {name} has {held} documents, {documents} were asked for")
    rows = evaluation["samples"][eval_name]
    filters = list(dict.fromkeys(row["filter"] for row in rows))
    chosen = strictest(filters)
    version = version_read(str(evaluation["versions"][eval_name]), filters)
    by_document = {row["doc_id"]: row for row in rows if row["filter"] == chosen}
    missing = [number for number in range(documents) if number not in by_document]
    if missing:
        raise MeasurementError(
            f"task {name}: {len(missing)} of {documents} documents have no answer, "
            f"first number {missing[0]}"
        )
    for number in range(documents):
        yield _answer(name, version, by_document[number])


def _answer(task: str, version: str, row: Sample) -> Answer:
    raw, response = row["resps"][0][0], row["filtered_resps"][0]
    if raw == NO_TEXT:
        raise MeasurementError(f"task {task}: document {row['doc_id']} was answered without a text")
    return Answer(
        task=task,
        task_version=version,
        doc_id=int(row["doc_id"]),
        doc_hash=row["doc_hash"],
        prompt_hash=row["prompt_hash"],
        target_hash=row["target_hash"],
        prompt=_prompt(row),
        target=str(row["target"]),
        response=str(response),
        correct=float(row[row["metrics"][0]]) == 1.0,
    )


def _prompt(row: Sample) -> str:
    """The text sent: the first argument of the document's only request."""
    return str(row["arguments"][0][0])
