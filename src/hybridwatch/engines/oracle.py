"""Runs the oracle of the plugin: transformers' plain path, in the environment of a build."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from hybridwatch.engines.builds import BuildSpec
from hybridwatch.engines.check import require_installed
from hybridwatch.engines.other_python import output_of
from hybridwatch.engines.server import Stopped
from hybridwatch.errors import BuildError
from hybridwatch.records.trial_parts import Completion
from hybridwatch.scenarios.expansion import PlannedWave
from hybridwatch.system.guarded import ConversingProcess
from hybridwatch.system.python_command import python_command

ORACLE_TIMEOUT_S: Final = 4 * 3600.0
"""A token takes a pass over the whole text; a model of ours needs a minute for a scenario."""
_MODULE: Final = "hybridwatch_engine.oracle"
_OFFLINE: Final = {"HF_HUB_OFFLINE": "1"}
_END: Final = 10
"""Lines of an error that are shown."""
ANSWER_TIMEOUT_S: Final = 300.0
"""The first answer waits for PyTorch and the model, half a minute on a busy machine."""

Waves = Sequence[PlannedWave]
Drafts = Sequence[Sequence[Completion]]


class Answered(NamedTuple):
    """What transformers said.

    ``trials`` have for each request the prompt, the tokens and their logarithms, and at each
    position the likeliest ids with logarithms of what bias and penalties make of them.
    """

    made_by: Mapping[str, str]
    trials: Sequence[Sequence[Mapping[str, Any]]]


class OracleQuestion(NamedTuple):
    """Token ids to answer; a ``draft`` of the answer saves time and changes nothing."""

    prompt: Sequence[int]
    max_tokens: int
    draft: Sequence[int] = ()


class OracleWorker(Stopped):
    """A model that transformers of a build keeps ready in a process; a context manager."""

    def __init__(self, build: BuildSpec, model: Path, log: Path) -> None:
        require_installed(build)
        words = ("-m", _MODULE, str(model), "--serve")
        command = python_command(*words, python=build.interpreter)
        self._model = model
        # The harness's own paths must not reach into the engine's world.
        self._process = ConversingProcess(command, log, {"PYTHONPATH": "", **_OFFLINE})

    def answer(self, questions: Sequence[OracleQuestion]) -> Sequence[Mapping[str, Any]]:
        """Have prompts answered; the answers are as in ``Answered.trials``."""
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


def answer(build: BuildSpec, model: Path, trials: Sequence[Waves], drafts: Drafts = ()) -> Answered:
    """Have requests answered by a build's transformers; drafts save time and change nothing."""
    require_installed(build)
    requests = json.dumps([_asked(waves, drafts, at) for at, waves in enumerate(trials)])
    output = output_of(
        build.interpreter,
        (_MODULE, str(model)),
        f"{model}: transformers",
        ORACLE_TIMEOUT_S,
        given=requests,
        variables=_OFFLINE,
    )
    return Answered(**json.loads(output))


def _asked(waves: Waves, drafts: Drafts, trial: int) -> list[dict[str, Any]]:
    known = list(drafts[trial]) if trial < len(drafts) else []
    found = []
    for wave in waves:
        requests = []
        for request in wave.requests:
            draft = list(known.pop(0).tokens[request.echoed :]) if known else []
            asked = {"prompt": request.prompt, "max_tokens": request.max_tokens, "draft": draft}
            params = request.sampling_params.as_written()
            requests.append({**asked, "sampling_params": params, "adapter": request.adapter})
        found.append({"continues": wave.continues, "requests": requests})
    return found
