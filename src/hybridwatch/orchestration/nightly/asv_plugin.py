"""A plugin of asv: what ``plugins`` of our configurations adds to it.

asv knows an environment by its path, a machine by its host, a number by its samples: two builds
would share a file, new runners start over, busy machines look like regressions. The matrix is set
aside where the environment exists; as parameters builds would replace each other's values. So five
places are changed, and held against the locked asv by ``test_asv_plugin.py``.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

from asv import util
from asv.benchmarks import Benchmarks
from asv.environment import Environment, ExistingEnvironment
from asv.machine import Machine, MachineCollection
from asv.publishing import OutputPublisher
from asv.results import Results

from hybridwatch.engines.check import check_build
from hybridwatch.engines.code_tree import git
from hybridwatch.errors import BuildError, GpuError, HybridwatchError
from hybridwatch.formats.write.asv import machine_facts
from hybridwatch.formats.write.asv_benchmarks import (
    BUILD_VARIABLE,
    RELEASE_VARIABLE,
    render_module_name,
)
from hybridwatch.measurement.testbed import probe_testbed
from hybridwatch.orchestration.nightly.suite import CONSOLE_VARIABLE, STATS_MARK, can_run, contender
from hybridwatch.scenarios.load import survey
from hybridwatch.system import nvidia
from hybridwatch.system.home import home

_FIRST: Final = "smoke."
"""What a reader of the site shall see first."""
_REMOTE: Final = re.compile(
    r"(?:\w+://(?:[^/@]*@)?|[\w.-]+@)([\w.-]+)(?::\d+)?[:/](.+?)(?:\.git)?/?"
)


def setup() -> None:
    """Change asv; it calls this once it has loaded the plugin."""
    os.environ.setdefault(CONSOLE_VARIABLE, f"/proc/{os.getpid()}/fd/2")
    Environment.__init__ = _of_a_build(Environment.__init__)
    ExistingEnvironment.name = Environment.name  # by its Python's version, as any other
    Benchmarks.discover = classmethod(_that_can_run(Benchmarks.discover.__func__))
    Results.add_result = _with_our_stats(Results.add_result)
    _name_the_machine()


def _of_a_build(made: Callable[..., None]) -> Callable[..., None]:
    """Tell environments apart by build, unless the matrix names it, or ``null`` as none's."""

    def make(self: Any, conf: Any, python: str, requirements: Any, variables: Any) -> None:
        if BUILD_VARIABLE not in conf.matrix.get("env_nobuild", {}):
            variables = variables | {("nobuild", name): word for name, word in _build().items()}
        # Of an existing environment asv has found the version, and goes on with the path.
        made(self, conf, getattr(self, "_python", python), requirements, variables)

    return make


@cache
def _build() -> Mapping[str, str]:
    try:
        request = contender()
        label = request.label
        if request.spec.origin:  # which the name alone does not tell from what it was yesterday
            label = request.build_label(check_build(request.spec).code_digest, changed=True)
    except HybridwatchError as error:
        raise util.UserError(f"{BUILD_VARIABLE}: {error}") from error
    return {BUILD_VARIABLE: label, RELEASE_VARIABLE: request.spec.release}


def _name_the_machine() -> None:
    """Have a machine known by what makes its numbers, whatever its host is called tonight."""
    facts = machine_facts(probe_testbed(gpus_here()))
    Machine.hardcoded_machine_name = facts["machine"]
    try:
        MachineCollection.load(facts["machine"])
    except util.UserError:
        MachineCollection.save(facts["machine"], facts)


def gpus_here() -> tuple[nvidia.Device, ...]:
    """Give the GPUs that are there, unless the named build computes on the processor."""
    with suppress(HybridwatchError):
        if os.environ.get(BUILD_VARIABLE) and contender().spec.accelerator == "cpu":
            return ()
    with suppress(GpuError):
        return nvidia.devices()
    return ()


def _that_can_run(discovered: Callable[..., Any]) -> Callable[..., Any]:
    """Run nothing that the build cannot run: it would be a row without a number each."""

    def discover(cls: type, conf: Any, *words: Any, **more: Any) -> Any:
        found = discovered(cls, conf, *words, **more)
        if BUILD_VARIABLE not in conf.matrix.get("env_nobuild", {}):
            scenarios = survey(home() / "scenarios").scenarios
            cannot = tuple(
                f"{render_module_name(one.id)}." for one in scenarios if not can_run(one)
            )
            for name in [name for name in found if name.startswith(cannot)]:
                del found[name]
        return found

    return discover


def _with_our_stats(added: Callable[..., None]) -> Callable[..., None]:
    """Store with a number how sure asv may be of it, and no samples that say otherwise."""

    def add(self: Any, benchmark: Mapping[str, Any], result: Any, **more: Any) -> None:
        stats = (result.stderr or "").rpartition(STATS_MARK)[2].partition("\n")[0]
        ours = STATS_MARK in (result.stderr or "")
        added(self, benchmark, result, **(more | ({"record_samples": False} if ours else {})))
        if ours:
            self._stats[benchmark["name"]] = [json.loads(stats)]

    return add


class MeasuredPublisher(OutputPublisher):  # type: ignore[misc]  # asv has no types
    """Publishes what was measured, smoke first; asv comes here before it makes a page."""

    order = -1

    @classmethod
    def publish(cls, conf: Any, _repo: Any, benchmarks: Any, graphs: Any, _revisions: Any) -> None:
        """Leave benchmarks without a value out, and link to where commits can be read."""
        values = {
            name: one
            for name, one in sorted(
                benchmarks.items(), key=lambda pair: (not pair[0].startswith(_FIRST), pair[0])
            )
            if any(graph.get_data() for graph in graphs.get_graph_group(name))
        }
        benchmarks.clear()
        benchmarks.update(values)
        if conf.show_commit_url == "#":
            with suppress(BuildError):
                remote = git(Path(conf.repo), "remote", "get-url", "origin").strip()
                conf.show_commit_url = list_commits(remote)


def list_commits(remote: str) -> str:
    """Give where a host shows the commits of ``remote``, without a password; ``#`` if unknown."""
    found = _REMOTE.fullmatch(remote)
    return f"https://{found[1]}/{found[2]}/commit/" if found else "#"
