"""The same matrix for who has no Ray: jobs of GitHub Actions and of Buildkite."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from hybridwatch.orchestration.fleet.job import Job, Testbed


def github_matrix(jobs: Sequence[Job], testbeds: Mapping[str, Testbed]) -> dict[str, Any]:
    """Give what ``strategy.matrix`` of a job takes by ``fromJSON``."""
    return {"include": [_entry(job, testbeds[job.testbed]) for job in jobs]}


def buildkite_steps(jobs: Sequence[Job], testbeds: Mapping[str, Testbed]) -> dict[str, Any]:
    """Give a pipeline, as ``buildkite-agent pipeline upload`` takes it."""
    return {"steps": [_step(job, testbeds[job.testbed]) for job in jobs]}


def command_of(job: Job) -> str:
    """Give the words that measure a job."""
    words = ["hybridwatch", "run", job.scenario]
    for label in job.builds:
        words += ["--build", label]
    if job.wish.trials is not None:
        words += ["--trials", str(job.wish.trials)]
    return shlex.join(words)


def _entry(job: Job, testbed: Testbed) -> dict[str, Any]:
    return {
        "name": job.title,
        "testbed": testbed.name,
        "runs-on": ["self-hosted", *_words(testbed)],
        "timeout-minutes": _minutes(job),
        "command": command_of(job),
    }


def _step(job: Job, testbed: Testbed) -> dict[str, Any]:
    return {
        "label": job.title,
        "command": command_of(job),
        "agents": dict(testbed.labels) or {"queue": testbed.name},
        "timeout_in_minutes": _minutes(job),
        # One measurement at a time of a series, wherever: its numbers are compared.
        "concurrency": 1,
        "concurrency_group": f"hybridwatch/{job.testbed}/{job.scenario}",
        "priority": job.priority,
        "artifact_paths": ["results/records/**/*"],
    }


def _words(testbed: Testbed) -> list[str]:
    """GitHub's labels are words without values."""
    return [f"{key}-{value}" for key, value in testbed.labels.items()] or [testbed.name]


def _minutes(job: Job) -> int:
    return max(1, round(job.wish.minutes))
