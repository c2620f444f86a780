"""``python -m hybridwatch.measurement.accuracy.fetch TASK...``: lm-eval's own tasks, with data.

The harness starts this before anything is measured, so that a data set that cannot be had is found
before an hour of engine time is spent. What is there already is not downloaded again.
"""

import sys


def main(*tasks: str) -> int:
    """Load each task as an evaluation would."""
    # Here, because lm-eval takes a second.
    from lm_eval.tasks import TaskManager, get_task_dict

    get_task_dict(list(tasks), TaskManager())
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
