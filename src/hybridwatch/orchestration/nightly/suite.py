"""What the asv suites in ``benchmarks/`` are made of: a class per scenario, made from its file.

asv runs every benchmark in a process of its own and knows no direction but down. So a session is
made once, in ``setup_cache``, and each ``track_*`` hands out a part of it; every rate has a twin in
seconds, answers become the share of wrong ones, and broken contracts are counted. Which
benchmarks a class has follows from its scenario.

asv keeps results by the names of benchmarks, such as
``smoke.padded_graph_rows.PaddedGraphRows.track_ttft``: the path of the scenario, then the class.

Imported again for each benchmark, so what measures is imported only where it is measured.
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from hybridwatch.errors import ScenarioError
from hybridwatch.formats.write.asv_benchmarks import (
    Form,
    TrackedMetric,
    benchmark_name,
    render_class_name,
    render_module_name,
    tracked,
)
from hybridwatch.orchestration.nightly.suite_session import can_run
from hybridwatch.scenarios.load import load_scenario, scenario_files
from hybridwatch.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from hybridwatch.orchestration.nightly.suite_session import Values

_SESSION_S: Final = 4 * 3600.0
"""After that asv gives up a session: a scenario takes minutes, model runner V2 on a CPU more."""
_HAND_OUT_S: Final = 600.0
"""After that asv gives up a benchmark, which only hands out a number."""

STATS_MARK: Final = "hybridwatch: how sure asv may be: "
"""Begins the line of a benchmark's output that ``asv_plugin`` reads: asv makes an interval of its
own from samples, and has no place for another."""


class Suite:
    """Base of the classes of good scenarios.

    Attributes:
        scenario: The scenario.
        tracked: Its benchmarks.
        version: asv's word for what is measured: results of other versions are not shown with it.
        timeout: Seconds of a benchmark.
        setup_cache: Makes the session, once for all benchmarks of the class; none where the build
            cannot run the scenario.
    """

    scenario: ClassVar[Scenario]
    tracked: ClassVar[tuple[TrackedMetric, ...]]
    version: ClassVar[str]
    timeout: ClassVar[float] = _HAND_OUT_S
    setup_cache: ClassVar[Callable[["Suite"], "Values"]]

    def setup(self, _values: "Values") -> None:
        """Skip a benchmark that the build cannot run.

        Raises:
            NotImplementedError: asv's word for that.
        """
        if not can_run(self.scenario):
            text = f"{self.scenario.id} needs the accelerator {self.scenario.accelerator}"
            raise NotImplementedError(text)


def suites(root: Path, package: str) -> dict[str, type]:
    """Make a class of benchmarks for each scenario file below a folder.

    Args:
        root: The folder whose groups are its subfolders; ids are paths below it.
        package: Where asv looks for benchmarks; its name is no part of theirs.

    Returns:
        The classes, each under a name that no other scenario has. The class of a file that is wrong
        has one benchmark, which fails with what is wrong.

    Raises:
        ScenarioError: The folder does not exist.
    """
    made = {}
    for path in scenario_files(root):
        scenario_id = path.relative_to(root).with_suffix("").as_posix()
        try:
            suite: type = _suite(load_scenario(path, root), package)
        except ScenarioError as error:
            suite = _failing(scenario_id, str(error), package)
        made[re.sub(r"\W", "_", scenario_id)] = suite
    return made


def _suite(scenario: Scenario, package: str) -> type[Suite]:
    content: dict[str, Any] = {
        "__doc__": scenario.why,
        "__module__": _module(scenario.id, package),
        "scenario": scenario,
        "version": str(scenario.version),
        "tracked": tracked(scenario),
        "setup_cache": _session(scenario, package),
    }
    for one in tracked(scenario):
        content[f"track_{one.name}"] = _benchmark(one, scenario)
    return cast("type[Suite]", type(render_class_name(scenario.id), (Suite,), content))


def _failing(scenario_id: str, problem: str, package: str) -> type:
    def track(_self: object) -> float:
        raise ScenarioError(problem)

    track.benchmark_name = benchmark_name(scenario_id, "scenario_file")  # type: ignore[attr-defined]
    content = {"__module__": _module(scenario_id, package), "track_scenario_file": track}
    return type(render_class_name(scenario_id), (), content)


def _module(scenario_id: str, package: str) -> str:
    """Have a module of a scenario's own, which asv tells sessions apart by."""
    name = f"{package}.{render_module_name(scenario_id)}"
    sys.modules.setdefault(name, ModuleType(name))
    return name


def _session(scenario: Scenario, package: str) -> Callable[[Suite], "Values"]:
    def setup_cache(self: Suite) -> "Values":
        if not can_run(self.scenario):
            return {}
        from hybridwatch.orchestration.nightly.suite_session import measured

        return measured(self.scenario, self.tracked)

    # asv distinguishes sessions by module and line. The line is the same for all; the module must
    # not be, or the first class would measure for every other.
    setup_cache.__module__ = _module(scenario.id, package)
    setup_cache.timeout = _SESSION_S  # type: ignore[attr-defined]  # asv reads it from the function
    return setup_cache


def _benchmark(one: TrackedMetric, scenario: Scenario) -> Callable[[Suite, "Values"], Any]:
    def track(_self: Suite, values: "Values") -> Any:
        found = values[one.name]
        if found.stats is not None:
            sys.stderr.write(f"{STATS_MARK}{json.dumps(dict(found.stats))}\n")
        return _handed(one, found.values)

    track.__doc__ = one.metric.doc
    # asv reads these from the function; without a name it would take that of the module.
    track.benchmark_name = benchmark_name(scenario.id, one.name)  # type: ignore[attr-defined]
    track.unit = one.unit  # type: ignore[attr-defined]
    track.pretty_name = f"{scenario.id}: {one.name}"  # type: ignore[attr-defined]
    return track


def _handed(one: TrackedMetric, values: tuple[float, ...]) -> Any:
    if not values:
        return float("nan")  # asv's word for skipped: this engine has no such number
    own = [one.form.of(value) for value in values]
    match one.form:
        case Form.WORST:
            worst = max(own)
            return int(worst) if worst.is_integer() else worst  # "27", not "27.0"
        case Form.WRONG:
            return sum(own) / len(own)
        case _:
            return {"samples": own, "number": 1}
