"""``python -m hybridwatch.measurement.accuracy.evaluate``: lm-eval, one evaluation after the other.

Each line on standard input names two files, a request and the answer to be written, as a JSON list;
``done`` on standard output follows. An evaluation that fails ends the process with lm-eval's own
error. With names of tasks it has their data on disk, and ends: a data set that cannot be had is
found before an hour of engine time is spent.

Imports are paid for once, and lm-eval's thousands of task files, 8 s of 11 s for 400 answers of a
fast engine, are read only when a task is not ours.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def evaluate(request: Mapping[str, Any]) -> dict[str, Any]:
    """Run the tasks and return lm-eval's ``versions``, ``n-samples`` and ``samples``.

    ``model_args`` are of lm-eval's ``local-completions``; of each task the first ``documents`` are
    answered.
    """
    # Here, because the harness imports this module for its types and lm-eval takes two seconds.
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    manager = TaskManager(
        include_path=request["include_path"], include_defaults=request["include_defaults"]
    )
    found = simple_evaluate(
        model="local-completions",
        model_args=request["model_args"],
        tasks=request["tasks"],
        task_manager=manager,
        limit=request["documents"],
        bootstrap_iters=0,  # uncertainty comes from the stored answers, pair by pair
        log_samples=True,
    )
    return {key: found[key] for key in ("versions", "n-samples", "samples")}


def main(*tasks: str) -> None:
    """Fetch the tasks' data; without tasks serve until standard input ends."""
    if tasks:
        from lm_eval.tasks import TaskManager, get_task_dict

        get_task_dict(list(tasks), TaskManager())
        return
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what lm-eval prints goes to the log
    import lm_eval  # noqa: F401 - before the first request

    for line in sys.stdin:
        request, answer = map(Path, json.loads(line))
        found = evaluate(json.loads(request.read_text(encoding="utf-8")))
        answer.write_text(json.dumps(found, default=str), encoding="utf-8")
        answers.write("done\n")
        answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
