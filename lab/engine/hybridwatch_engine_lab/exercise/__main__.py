"""``python -m hybridwatch_engine_lab.exercise [FIX...]``: does switching change anything?

Prints one JSON object; the exit status is 1 when a fix is not ok and 2 for an unknown one.
"""

import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout

from hybridwatch_engine.fixes.registry import Switchboard
from hybridwatch_engine.source import installed_tree

from hybridwatch_engine_lab.exercise.trial import EXERCISES, ExerciseOutcome, attempt


def outcomes(fix_ids: Sequence[str]) -> dict[str, ExerciseOutcome]:
    """Exercise fixes one after the other, each on an engine that is as released otherwise."""
    board = Switchboard(installed_tree())
    return {fix_id: attempt(board, fix_id, EXERCISES[fix_id]) for fix_id in fix_ids}


def main(arguments: Sequence[str]) -> int:
    """Run the exercises of the fixes named, or all of them."""
    if unknown := [fix_id for fix_id in arguments if fix_id not in EXERCISES]:
        sys.stderr.write(f"no exercise for {', '.join(unknown)}; known: {', '.join(EXERCISES)}\n")
        return 2
    with redirect_stdout(sys.stderr):  # vLLM talks on standard output
        import vllm

        found = outcomes(list(arguments) or list(EXERCISES))
    fixes = {fix_id: outcome.to_json() for fix_id, outcome in found.items()}
    sys.stdout.write(json.dumps({"release": vllm.__version__, "fixes": fixes}) + "\n")
    return int(not all(outcome.ok for outcome in found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
