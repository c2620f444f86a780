"""Whether a file agrees with itself: a score with its documents, a document with its answer.

Only what can be computed again without doubt is held against a file. A task that scores by a
function of its own, or by a regular expression that lm-eval does not ship, is believed.
"""

import math
import string
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from hybridwatch.errors import IngestError
from hybridwatch.formats.read.document import DocumentNode
from hybridwatch.records.run import Answer, Run, Trial

_CLOSE: Final = 1e-6
"""Shares of the same documents differ by the order of their sum alone."""
_EXACT: Final = "exact_match"
_CHOICE: Final = "acc"
_MUTUAL: Final = "acc_mutual_info"
"""Scores every choice a second time, without the question."""
_ACCURACY: Final = "accuracy."
_SHOWN: Final = 40

_REMOVED: Final[Mapping[str, Callable[[str], str]]] = {
    ",": lambda text: text.replace(",", ""),
    r"\$": lambda text: text.replace("$", ""),
    "(?s).*#### ": lambda text: text.rpartition("#### ")[2],
    # An expression's end is before a last line break, too.
    r"\.$": lambda text: text[:-2] + "\n" if text.endswith(".\n") else text.removesuffix("."),
}
"""What the expressions of lm-eval's own tasks take away. Those of a stranger are never run."""


def check_mean(
    scores: DocumentNode, key: str, rights: Sequence[bool], config: Mapping[str, Any]
) -> None:
    """Hold the score of a task, such as ``exact_match,strict-match``, against its documents.

    ``rights`` is whether each was answered right; ``config`` is the task's, as lm-eval writes it.
    """
    aggregation = _metric(config, key.partition(",")[0]).get("aggregation", "mean")
    if aggregation != "mean":
        return
    score, mean = scores.at(key), sum(rights) / len(rights)
    if abs(score.number() - mean) > _CLOSE:
        raise score.wrong(f"{mean:g}, the mean of its {len(rights)} documents")


def check_document(row: DocumentNode, metric: str, config: Mapping[str, Any]) -> None:
    """Hold the score of a document against its response and target, or its likeliest choice."""
    if metric == _CHOICE:
        _check_choice(row, config)
        return
    normal = _normal(_metric(config, metric)) if metric == _EXACT else None
    responses = row.value.get("filtered_resps")
    texts = [row.value.get("target"), *(responses[:1] if isinstance(responses, list) else ())]
    if len(texts) < 2 or normal is None or "process_results" in config or "doc_to_choice" in config:
        return
    target, response = (str(text) for text in texts)
    if not all(isinstance(text, str) for text in texts) or target.startswith("["):
        return  # a list of targets, any of which is right
    is_equal = normal(target) == normal(response)
    is_alike = normal(target).strip() == normal(response).strip()
    score = row.at(metric)
    if (score.value == 1 and not is_alike) or (score.value == 0 and is_equal):
        shown = f"response {response[:_SHOWN]!r}, target {target[:_SHOWN]!r}"
        raise score.wrong(f"{int(is_equal)} ({shown})")


def _check_choice(row: DocumentNode, config: Mapping[str, Any]) -> None:
    if config.get("output_type") != "multiple_choice" or "process_results" in config:
        return
    found, target = _likelihoods(row.value), str(row.value.get("target"))
    # The target is a place, unless it may as well be the text of a choice: then it is unclear.
    if not found or not target.isdecimal() or target in _choices(row.value):
        return
    likeliest = found.index(max(found))
    score = row.at(_CHOICE)
    if int(target) < len(found) and score.value != (likeliest == int(target)):
        shown = f"choice {likeliest} is the likeliest, target {target}"
        raise score.wrong(f"{int(likeliest == int(target))} ({shown})")


def _likelihoods(row: Mapping[str, Any]) -> Sequence[float]:
    """Read the log likelihood of each choice; none where they are not all there."""
    try:
        found = [float(likelihood) for likelihood, _ in row["filtered_resps"]]
    except (KeyError, TypeError, ValueError):
        return ()
    if any(math.isnan(each) for each in found):
        return ()
    return found[: len(found) // 2] if _MUTUAL in row.get("metrics", ()) else found


def _choices(row: Mapping[str, Any]) -> Collection[str]:
    arguments = row.get("arguments")
    asked = arguments.values() if isinstance(arguments, dict) else ()
    return {str(one.get("arg_1")).strip() for one in asked if isinstance(one, dict)}


def check_record(run: Run) -> None:
    """Hold the accuracy of every trial of a record against its answers."""
    for trial in run.trials:
        _check_trial(trial)


def _check_trial(trial: Trial) -> None:
    answers: dict[str, list[Answer]] = {}
    for answer in trial.answers:
        answers.setdefault(_ACCURACY + answer.task, []).append(answer)
    for sample in trial.samples:
        beside = answers.get(sample.metric)
        if beside is None or not sample.values:
            continue
        where = f"trials[{trial.index}].samples: {sample.metric}"
        mean = sum(answer.correct for answer in beside) / len(beside)
        found = sum(sample.values) / len(sample.values)
        if abs(found - mean) > _CLOSE:
            raise IngestError(
                f"{where}: expected {mean:g}, as its {len(beside)} answers are, found {found:g}"
            )
        if sample.statistic is None:
            _check_each(where, sample.values, beside)


def _check_each(where: str, values: Sequence[float], answers: Sequence[Answer]) -> None:
    if len(values) != len(answers):
        raise IngestError(f"{where}: expected {len(answers)} values, found {len(values)}")
    for value, answer in zip(values, answers, strict=True):
        if value != answer.correct:
            raise IngestError(
                f"{where}: document {answer.doc_id}: expected {int(answer.correct)}, as its answer "
                f"is, found {value:g}"
            )


def _metric(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    listed = config.get("metric_list")
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict) and one.get("metric") == name:
            return one
    return {}


def _normal(options: Mapping[str, Any]) -> Callable[[str], str] | None:
    """How texts are made alike before they are compared; ``None`` where that is not known."""
    expressions = options.get("regexes_to_ignore") or []
    if not options or not all(one in _REMOVED for one in expressions):
        return None
    dropped = string.punctuation if options.get("ignore_punctuation") else ""
    dropped += string.digits if options.get("ignore_numbers") else ""
    table = str.maketrans("", "", dropped)

    def apply(text: str) -> str:
        for expression in expressions:
            text = _REMOVED[expression](text)
        return (text.lower() if options.get("ignore_case") else text).translate(table)

    return apply
