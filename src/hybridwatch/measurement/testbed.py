"""Describes the testbed of a run: our version, the machine, and the builds on it."""

import hashlib
import os
import platform
import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Final

import psutil

from hybridwatch.engines.builds import BuildRequest
from hybridwatch.engines.code_tree import git
from hybridwatch.engines.fitting import find_checkpoint, misfit
from hybridwatch.engines.preflight import Needs, require_machine
from hybridwatch.errors import BuildError
from hybridwatch.measurement.accuracy.harness import fetch_tasks
from hybridwatch.records.identity import Harness, Testbed
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system import nvidia
from hybridwatch.system.home import is_checkout, shipped


def harness_identity() -> Harness:
    """Read our version and, when we run from a checkout, its revision."""
    # A repository around an installed package would not be ours.
    revision = _revision(shipped()) if is_checkout() else None
    return Harness(version=version("hybridwatch"), revision=revision)


def _revision(folder: Path) -> str | None:
    """Commit of the checkout around a folder, with ``+`` if anything but results was changed."""
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return None
    changed = _git(folder, "status", "--porcelain", "--", ":/", ":(exclude,top)results")
    return f"{commit}+" if changed else commit


def _git(folder: Path, *words: str) -> str:
    try:
        return git(folder, *words).strip()
    except BuildError:
        return ""


def make_ready(scenario: Scenario, sides: Sequence[BuildRequest], models: Path) -> None:
    """Look whether engines can run here; have a hub's model, and its tasks' data, on disk."""
    for side in sides:
        if reason := misfit(scenario, side):
            raise BuildError(f"{scenario.id} {reason}")
    builds = {side.spec.name: side.spec for side in sides}
    require_machine(Needs.of(scenario, tuple(builds.values())))
    if not scenario.on_hub:
        return
    for build in builds.values():
        find_checkpoint(scenario, build, models)
    if scenario.accuracy is not None:
        with tempfile.TemporaryDirectory(prefix="hybridwatch-") as folder:
            fetch_tasks(scenario.accuracy.tasks, Path(folder))


HOST_VARIABLE: Final = "HYBRIDWATCH_TESTBED_HOST"
"""Environment variable with the name of a host whose histories are its own: it becomes part of the
testbed's id, so that machines of one kind have different ids."""
_GIB = 1024**3


def probe_testbed(devices: Sequence[nvidia.Device] = ()) -> Testbed:
    """Read the facts of this machine that affect numbers.

    Machines of one kind share the id, unless ``HYBRIDWATCH_TESTBED_HOST`` names this one. What is
    upgraded every few weeks (kernel, driver) is no part of it, so that a history goes on;
    comparisons say where it differs. ``devices`` are none where builds compute on the processor.
    """
    model = _cpu_model()
    cores = len(os.sched_getaffinity(0))
    memory = psutil.virtual_memory().total
    facts = f"{model}|{cores}|{round(memory / _GIB)}"
    testbed = Testbed(
        id=f"{_plain(model)}-{cores}c-{_digest(facts)}",
        cpu_model=model,
        cores=cores,
        memory_bytes=memory,
        kernel=platform.release(),
    )
    found = _with_gpus(testbed, facts, devices) if devices else testbed
    host = os.environ.get(HOST_VARIABLE, "")
    return replace(found, id=f"{found.id}-{_plain(host)}") if host else found


def _with_gpus(testbed: Testbed, facts: str, devices: Sequence[nvidia.Device]) -> Testbed:
    driver = nvidia.driver()
    limits = tuple(one.power_limit_w for one in devices if one.power_limit_w is not None)
    facts += "".join(
        f"|{one.name}|{round(one.memory_bytes / _GIB)}|{one.power_limit_w}" for one in devices
    )
    return replace(
        testbed,
        id=f"{_plain(devices[0].name)}-x{len(devices)}-{testbed.cores}c-{_digest(facts)}",
        gpus=tuple(one.name for one in devices),
        driver=driver.version,
        cuda=driver.cuda,
        gpu_memory_bytes=tuple(one.memory_bytes for one in devices),
        gpu_power_limits_w=limits if len(limits) == len(devices) else (),
    )


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _digest(facts: str) -> str:
    return hashlib.sha256(facts.encode()).hexdigest()[:6]


def _cpu_model() -> str:
    """The processor's name; the architecture where the kernel does not name one."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    named = re.search(r"^model name\s*:\s*(.+)$", text, flags=re.MULTILINE)
    return named[1].strip() if named else platform.machine()
