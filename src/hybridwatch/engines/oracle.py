"""Runs the oracle of the plugin: transformers' plain path, in the environment of a build."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from hybridwatch.engines.builds import BuildSpec
from hybridwatch.engines.check import require_installed
from hybridwatch.engines.other_python import output_of
from hybridwatch.records.run import Completion
from hybridwatch.scenarios.expansion import PlannedWave

ORACLE_TIMEOUT_S: Final = 4 * 3600.0
"""A token takes a pass over the whole text; a model of ours needs a minute for a scenario."""
MODULE: Final = "hybridwatch_engine.oracle"
OFFLINE: Final = {"HF_HUB_OFFLINE": "1"}

Waves = Sequence[PlannedWave]
Drafts = Sequence[Sequence[Completion]]


class Answered(NamedTuple):
    """What transformers said.

    ``trials`` have for each request the prompt, the tokens and their logarithms, and at each
    position the likeliest ids with logarithms of what bias and penalties make of them.
    """

    made_by: Mapping[str, str]
    trials: Sequence[Sequence[Mapping[str, Any]]]


def answer(build: BuildSpec, model: Path, trials: Sequence[Waves], drafts: Drafts = ()) -> Answered:
    """Have requests answered by a build's transformers; drafts save time and change nothing."""
    require_installed(build)
    requests = json.dumps([_asked(waves, drafts, at) for at, waves in enumerate(trials)])
    output = output_of(
        build.interpreter,
        (MODULE, str(model)),
        f"{model}: transformers",
        ORACLE_TIMEOUT_S,
        given=requests,
        variables=OFFLINE,
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
