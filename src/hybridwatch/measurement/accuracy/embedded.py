"""The embedded tasks' documents, as ``hybridwatch_lab.embedded_tasks`` makes them.

Standard library only: training recipes import this module from an engine's environment.
"""

import json
from dataclasses import dataclass
from pathlib import Path

TASKS_DIRECTORY = Path(__file__).parent / "tasks"


@dataclass(frozen=True, slots=True)
class EmbeddedQuestion:
    """One question and its only right answer, without the newline that ends every answer."""

    prompt: str
    answer: str


def read_documents(path: Path) -> list[EmbeddedQuestion]:
    """Read the documents of an evaluation file."""
    return [
        EmbeddedQuestion(**json.loads(line))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
