"""Has prompts answered by transformers of a build, one after the other, in one process."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from hybridwatch.engines.builds import BuildSpec
from hybridwatch.engines.check import require_installed
from hybridwatch.engines.oracle import MODULE, OFFLINE
from hybridwatch.engines.server import Stopped
from hybridwatch.errors import BuildError
from hybridwatch.system.guarded import ConversingProcess
from hybridwatch.system.python_command import python_command

_END: Final = 10
"""Lines of an error that are shown."""
ANSWER_TIMEOUT_S: Final = 300.0
"""The first answer waits for PyTorch and the model, half a minute on a busy machine."""


class OracleQuestion(NamedTuple):
    """Token ids to answer; a ``draft`` of the answer saves time and changes nothing."""

    prompt: Sequence[int]
    max_tokens: int
    draft: Sequence[int] = ()


class OracleWorker(Stopped):
    """A model that transformers of a build keeps ready in a process; a context manager."""

    def __init__(self, build: BuildSpec, model: Path, log: Path) -> None:
        require_installed(build)
        words = ("-m", MODULE, str(model), "--serve")
        command = python_command(*words, python=build.interpreter)
        self._model = model
        # The harness's own paths must not reach into the engine's world.
        self._process = ConversingProcess(command, log, {"PYTHONPATH": "", **OFFLINE})

    def answer(self, questions: Sequence[OracleQuestion]) -> Sequence[Mapping[str, Any]]:
        """Have prompts answered; the answers are as in ``engines.oracle.Answered.trials``."""
        try:
            self._process.ask(json.dumps([question._asdict() for question in questions]))
            found: list[Mapping[str, Any]] = json.loads(self._process.answer(ANSWER_TIMEOUT_S))
        except (BrokenPipeError, EOFError):
            tail = self._process.log_tail(_END)
            raise BuildError(f"{self._model}: transformers ended:\n{tail}") from None
        except TimeoutError:
            raise BuildError(f"{self._model}: no answer after {ANSWER_TIMEOUT_S:.0f} s") from None
        return found

    def stop(self) -> None:
        """End the process; may be called again."""
        self._process.stop()
