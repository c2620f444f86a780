"""Which answer of one side belongs to which of the other.

lm-eval hashes the document, the prompt and the target of every sample; equal hashes mean the same
question. Position alone would pair different questions as soon as a task grows.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass

from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.paired_proportion import Pairs
from hybridwatch.analysis.verdict import Flip
from hybridwatch.records.run import Answer, Phase

Key = tuple[str, str, str, str, int]


@dataclass(frozen=True, slots=True)
class Answers:
    """What one side answered to one task.

    Attributes:
        versions: Versions of the task, normally one.
        by_key: One answer per question; over several trials the one given more often in the
            sense of right or wrong, a draw going to the first trial.
    """

    versions: frozenset[str]
    by_key: dict[Key, Answer]

    @property
    def values(self) -> tuple[float, ...]:
        """1.0 or 0.0 per question, in the order of the task."""
        return tuple(float(answer.correct) for answer in self.by_key.values())


def list_answers(side: OneSide, task: str) -> Answers:
    """Collect a side's answers to a task from all its accuracy trials."""
    given: defaultdict[Key, list[Answer]] = defaultdict(list)
    for trial in side.trials(Phase.ACCURACY):
        seen: Counter[tuple[str, str, str, str]] = Counter()
        for answer in sorted((a for a in trial.answers if a.task == task), key=lambda a: a.doc_id):
            key = (answer.task, answer.doc_hash, answer.prompt_hash, answer.target_hash)
            # A task may hold one question twice; the first pairs with the first.
            given[*key, seen[key]].append(answer)
            seen[key] += 1
    versions = frozenset(answer.task_version for some in given.values() for answer in some)
    return Answers(versions, {key: _majority(some) for key, some in given.items()})


def pair(baseline: Answers, contender: Answers) -> tuple[Pairs, tuple[Flip, ...]]:
    """Lay two sides with equal questions next to each other.

    Gives the table, and every document answered right on one side only, in the order of the task.
    """
    flips = tuple(
        Flip(answer, contender.by_key[key])
        for key, answer in baseline.by_key.items()
        if answer.correct is not contender.by_key[key].correct
    )
    lost = sum(flip.baseline.correct for flip in flips)
    return Pairs(len(baseline.by_key), lost, len(flips) - lost), flips


def _majority(answers: list[Answer]) -> Answer:
    right = sum(answer.correct for answer in answers)
    if 2 * right == len(answers):
        return answers[0]
    correct = 2 * right > len(answers)
    return next(answer for answer in answers if answer.correct is correct)
