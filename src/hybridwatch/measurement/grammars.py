"""Holds answers against the grammars that their requests name."""

from collections.abc import Sequence

from hybridwatch.engines.control import EngineControl
from hybridwatch.records.trial_parts import Completion
from hybridwatch.scenarios.expansion import PlannedWave


def count_grammar_breaks(
    control: EngineControl, waves: Sequence[PlannedWave], answered: Sequence[Completion]
) -> int | None:
    """Count the answers that leave their grammars; ``None`` if no request names one.

    An answer without tokens, which the engine ended with an error, is no word either. Requests
    whose client went away are not counted.
    """
    planned = (request for wave in waves for request in wave.requests)
    answers = [
        (outputs.as_written(), one.tokens[request.echoed :], request.max_tokens)
        for request, one in zip(planned, answered, strict=True)
        if (outputs := request.sampling_params.structured_outputs) is not None
        and request.abort_at_step is None
    ]
    if not answers:
        return None
    return sum(at is not None for at in control.find_grammar_breaks(answers))
