"""What a record is about, read off its first bytes: enough to know that a newer one replaces it.

Only records in the layout of ``record.codec`` are understood; any other one has to be read whole.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hybridwatch.record.family import family_of
from hybridwatch.record.run import Run

HEAD: Final = 32 * 1024
"""Bytes of a record in which its heading stands: what is long, its trials, comes last."""

_FIELDS: Final = ("builds", "scenario", "testbed")
_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Question:
    """What a run asks; of two runs with the same question the newer one counts.

    Attributes:
        scenario: Its id.
        testbed: Id of the machine.
        families: Of each side's build, the baseline's first.
        same: Whether both sides are one build, which asks whether the machine is quiet.
    """

    scenario: str
    testbed: str
    families: tuple[str, ...]
    same: bool


def question_of(run: Run) -> Question:
    """Say what a run asks."""
    return _question(run.scenario.id, run.testbed.id, [build.label for build in run.builds])


def read_question(head: bytes) -> Question | None:
    """Say what a record asks.

    Args:
        head: Its first ``HEAD`` bytes.

    Returns:
        ``None`` if these do not say.
    """
    text = head.decode("utf-8", errors="replace")
    try:
        builds, scenario, testbed = (_field(text, name) for name in _FIELDS)
        labels = [build["label"] for build in builds]
        ids = scenario["id"], testbed["id"]
    except (ValueError, KeyError, TypeError):
        return None
    if not labels or not all(isinstance(word, str) for word in (*ids, *labels)):
        return None
    return _question(*ids, labels)


def _question(scenario: str, testbed: str, labels: list[str]) -> Question:
    families = tuple(family_of(label) for label in labels)
    return Question(scenario, testbed, families, len(labels) > 1 and len(set(labels)) == 1)


def _field(text: str, name: str) -> Any:
    # A line break inside a JSON text is written as an escape: this is the outermost level.
    mark = f'\n  "{name}": '
    found: Mapping[str, Any] | list[Any]
    found, _ = _DECODER.raw_decode(text, text.index(mark) + len(mark))
    return found
