"""Runs of files without a time: their trials end when the file was written, one after another."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hybridwatch.formats.read.foreign import ForeignDocument, ForeignRun
from hybridwatch.records.run import UNKNOWN, Failure, Phase, Sample, Trial

Passes = Sequence[tuple[float, Sequence[Sample] | Failure]]
"""Of each trial the seconds, and the samples or why there are none."""


def build_untimed(
    document: ForeignDocument, tool: str, workload: Mapping[str, Any], passes: Passes
) -> ForeignRun:
    """Make a run; ``workload`` has the ``model``, which is ``unknown`` where no file names it."""
    at = document.written_at - timedelta(seconds=sum(seconds for seconds, _ in passes))
    started, trials = at, []
    for seconds, found in passes:
        trial = Trial(0, 0, Phase.PERFORMANCE, at, seconds)
        if isinstance(found, Failure):
            trials.append(replace(trial, failure=found))
        else:
            trials.append(replace(trial, samples=tuple(found)))
        at += timedelta(seconds=seconds)
    lacks_load = workload["model"] == UNKNOWN
    return ForeignRun(
        tool=tool,
        scenario=f"{tool}/{workload['model']}",
        workload=workload,
        started_at=started,
        finished_at=document.written_at,
        trials=trials,
        unknown=(
            *("harness.version", "started_at", "finished_at"),
            *(("scenario.digest",) if lacks_load else ()),
        ),
    )
