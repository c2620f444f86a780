"""``python -m hybridwatch.quality.evaluate REQUEST ANSWER``: one lm-eval evaluation, JSON to JSON.

The harness starts this in a process of its own, which it can bound and kill. It does what
``python -m lm_eval`` does but for one thing: lm-eval's command line reads the thousands of task
files it ships before it looks for ours, 8 s of 11 s for 400 answers of a fast engine. Here they
are read only when a task is asked for that is not ours.
"""

import json
import sys
from pathlib import Path
from typing import Any, TypedDict


class Request(TypedDict):
    """What the process reads.

    Attributes:
        model_args: Arguments of lm-eval's ``local-completions`` model.
        tasks: lm-eval task names.
        documents: How many of each, from the first.
        include_path: Folder of our tasks.
        include_defaults: Whether lm-eval's own tasks are needed.
    """

    model_args: dict[str, Any]
    tasks: list[str]
    documents: int
    include_path: str
    include_defaults: bool


def evaluate(request: Request) -> dict[str, Any]:
    """Run the tasks and return lm-eval's ``versions``, ``n-samples`` and ``samples``."""
    # Here, because the harness imports this module for its types and lm-eval takes a second.
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


def main(request_path: str, answer_path: str) -> int:
    """Read a request, evaluate, write the answer."""
    request: Request = json.loads(Path(request_path).read_text(encoding="utf-8"))
    answer = evaluate(request)
    Path(answer_path).write_text(json.dumps(answer, default=str), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
