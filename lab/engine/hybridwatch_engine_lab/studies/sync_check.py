"""``python -m hybridwatch_engine_lab.studies.sync_check MODEL``: does a profiler count the same?

One engine in one process decodes a batch on a CUDA device while the host-sync probe and
``torch.profiler`` watch the same steps. The waits that the probe counts must be those that the
profiler finds among the calls of the CUDA runtime, to within 2 %, and so must the time: what the
two say was lost may differ by 2 % of the steps' time. Prints one JSON object; the exit status is 1
when they do not agree, 2 when there is no CUDA device.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hybridwatch_engine.model_runner import is_step, steps
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.probes.host_sync import HostSyncProbe

from hybridwatch_engine_lab.studies.profiler_trace import MARK, TracedStep, read_steps
from hybridwatch_engine_lab.studies.stepping import (
    device_name,
    give,
    has_cuda,
    own_answer,
    start,
    stretch,
)

TOLERANCE: Final = 0.02


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the engine, watch its steps twice, print."""
    parser = argparse.ArgumentParser(prog="python -m hybridwatch_engine_lab.studies.sync_check")
    parser.add_argument("model")
    parser.add_argument("--batch", type=int, default=8, help="requests in the batch")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--engine", type=json.loads, default={}, help="engine arguments, as JSON")
    options = parser.parse_args(arguments)
    if not has_cuda():
        sys.stderr.write("sync_check: no CUDA device: nothing here waits for one\n")
        return 2
    with own_answer() as answer:
        engine = start(options.model, options.batch, options.engine)
        stretch(engine, "warm-up", options.batch)
        probed, traced = watch(engine, options.batch, options.steps)
        found = agreement(probed, traced)
        give(answer, {"device": device_name(), **found})
    return int(not found["agree"])


def watch(engine: Any, rows: int, number: int) -> tuple[dict[str, Any], tuple[TracedStep, ...]]:
    """Decode a batch under probe and profiler: what each saw of the same steps."""
    from torch.profiler import ProfilerActivity, profile

    probe = HostSyncProbe()
    marks = PatchSet(*(Patch(*function, _marked) for function in steps()))
    probe.start()
    marks.install()
    try:
        activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
        with profile(activities=activities) as profiler:
            stretch(engine, "watched", rows, number)
    finally:
        marks.remove()
        probed = probe.stop()
    with tempfile.TemporaryDirectory(prefix="hybridwatch-") as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        return probed, read_steps(json.loads(path.read_text(encoding="utf-8")))


def _marked(original: Callable[..., Any]) -> Callable[..., Any]:
    """Let the trace say where a step begins."""
    from torch.profiler import record_function

    def execute_model(runner: Any, scheduled: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_step(scheduled, kwargs):
            return original(runner, scheduled, *args, **kwargs)
        with record_function(MARK):
            return original(runner, scheduled, *args, **kwargs)

    return execute_model


def agreement(probed: Mapping[str, Any], traced: Sequence[TracedStep]) -> dict[str, Any]:
    """Hold what the probe told against the trace; the last step is left out of both.

    A profiler that stops waits for the device, which falls into the last step.

    Returns:
        ``steps``; ``probe`` and ``profiler``, each with ``waits`` and ``seconds``, the profiler's
        also ``calls``, by the runtime's names; ``steps_off``: steps whose waits differ;
        ``waits_off``: difference of all waits, as a share of the larger; ``time_off``: difference
        of the seconds, as a share of the steps' time; ``agree``.
    """
    counts, seconds = probed["reads_per_step"][:-1], probed["wait_seconds_per_step"][:-1]
    kept = traced[:-1]
    waits = sum(counts), sum(step.count for step in kept)
    lost = sum(seconds), sum(step.seconds for step in kept)
    whole = sum(probed["step_seconds"][:-1])
    waits_off = abs(waits[0] - waits[1]) / max(*waits, 1)
    time_off = abs(lost[0] - lost[1]) / whole if whole else 0.0
    steps_off = sum(count != step.count for count, step in zip(counts, kept, strict=False))
    same_steps = len(counts) == len(kept) and steps_off <= TOLERANCE * len(counts)
    within = waits_off <= TOLERANCE and time_off <= TOLERANCE
    calls = sum((Counter(step.waits) for step in kept), Counter[str]())
    return {
        "steps": len(counts),
        "probe": {"waits": waits[0], "seconds": lost[0], "sites": probed["sites"]},
        "profiler": {"waits": waits[1], "seconds": lost[1], "calls": dict(calls)},
        "untimed": probed["untimed"],
        "steps_off": steps_off,
        "waits_off": waits_off,
        "time_off": time_off,
        # Where nobody waited for anything there was nothing to agree on.
        "agree": same_steps and within and waits[1] > 0,
    }


if __name__ == "__main__":
    sys.exit(main())
