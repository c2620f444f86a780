"""Asks an installed build, in its own Python, which fixes its code has."""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hybridwatch.engine.builds import BuildSpec
from hybridwatch.engine.install import State, state
from hybridwatch.engine.preflight import require_gpu
from hybridwatch.errors import BuildError

CHECK_TIMEOUT_S: Final = 60.0
"""The probes read source files and take under a second; a cold disk takes longer."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fix in one release.

    Attributes:
        state: ``present``, ``lacking`` or ``not-applicable``.
        evidence: Where in the code it was seen, for a person.
    """

    state: str
    evidence: str


@dataclass(frozen=True, slots=True)
class BuildCheck:
    """What an environment really holds.

    Attributes:
        distribution: The package that brings vLLM.
        release: Its version.
        wheel_digest: SHA-256 of the list of its files.
        fixes: By fix id.
        faults: What can be planted, and what that does, by fault id.
        code_digest: SHA-256 over vLLM's Python files as they lie there, patched or not; ``None``
            from a plugin that does not give it.
    """

    distribution: str
    release: str
    wheel_digest: str
    fixes: Mapping[str, Finding]
    faults: Mapping[str, str]
    code_digest: str | None = None


def require_installed(build: BuildSpec) -> None:
    """Refuse a build of which no engine can be started here.

    Raises:
        BuildError: Its environment is missing or stale, with the command that makes it; or it is
            for CUDA, and this machine lacks what that needs.
    """
    require_gpu(build)
    _require_environment(build)


def _require_environment(build: BuildSpec) -> None:
    found = state(build)
    if found is not State.INSTALLED:
        raise BuildError(
            f"the environment of {build.name} is {found.value}; "
            f"run: hybridwatch engine install {build.name}"
        )


def check_build(build: BuildSpec, *, timeout_s: float = CHECK_TIMEOUT_S) -> BuildCheck:
    """Probe the code of an installed build.

    Raises:
        BuildError: It is not installed, or the probe failed, hung, or gave no answer.
    """
    _require_environment(build)  # reading code takes no GPU
    command = [str(build.interpreter), "-m", "hybridwatch_engine.check"]
    # The harness's own paths must not reach into the engine's world.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BuildError(f"{build.name}: the check gave no answer in {timeout_s:g} s") from None
    if done.returncode != 0:
        tail = "\n".join(done.stderr.splitlines()[-10:])
        raise BuildError(f"{build.name}: the check ended with status {done.returncode}:\n{tail}")
    return _read(build, done.stdout)


def _read(build: BuildSpec, text: str) -> BuildCheck:
    try:
        raw: dict[str, Any] = json.loads(text)
        return BuildCheck(
            distribution=raw["distribution"],
            release=raw["release"],
            wheel_digest=raw["wheel_digest"],
            fixes={fix: Finding(**finding) for fix, finding in raw["fixes"].items()},
            faults=dict(raw["faults"]),
            code_digest=raw.get("code_digest"),
        )
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        shown = text.strip()[:200]
        raise BuildError(f"{build.name}: the check answered no report: {shown!r}") from error
