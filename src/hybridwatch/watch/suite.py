"""What the asv suites in ``benchmarks/`` are made of: a class per question, a scenario per class.

asv runs every benchmark in a process of its own and knows no direction but down. So a session is
made once, in ``setup_cache``, and each ``track_*`` hands out a part of it; every rate has a twin in
seconds, answers become the share of wrong ones, and broken contracts are counted. Which
benchmarks a class has follows from its scenario.

Imported anew for each benchmark, so what measures is imported only where it is measured.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from hybridwatch.engine.builds import home
from hybridwatch.scenario.load import load_scenario
from hybridwatch.scenario.scenario import Scenario
from hybridwatch.watch.suite_builds import can_run
from hybridwatch.watch.tracked import Form, Tracked, tracked

if TYPE_CHECKING:
    from hybridwatch.watch.suite_session import Values

_SESSION_S: Final = 4 * 3600.0
"""After that asv gives up a session: a scenario takes minutes, model runner V2 on a CPU more."""
_HAND_OUT_S: Final = 600.0
"""After that asv gives up a benchmark, which only hands out a number."""


class Suite:
    """Base of a question: ``class PaddedGraphRows(Suite, scenario="smoke/padded-graph-rows")``.

    Attributes:
        scenario: The scenario.
        tracked: Its benchmarks.
        version: asv's word for what is measured: results of other versions are not shown with it.
        timeout: Seconds of a benchmark.
        setup_cache: Makes the session, once for all benchmarks of the class; none where the build
            cannot run the scenario.
    """

    scenario: ClassVar[Scenario]
    tracked: ClassVar[tuple[Tracked, ...]]
    version: ClassVar[str]
    timeout: ClassVar[float] = _HAND_OUT_S
    setup_cache: ClassVar[Callable[["Suite"], "Values"]]

    def __init_subclass__(cls, *, scenario: str) -> None:
        """Give the class what asv looks for.

        Raises:
            ScenarioError: There is no such scenario, or its file is wrong.
        """
        root = home() / "scenarios"
        cls.scenario = load_scenario(root / f"{scenario}.toml", root)
        cls.version = str(cls.scenario.version)
        cls.tracked = tracked(cls.scenario)
        cls.setup_cache = _session(cls)
        for one in cls.tracked:
            setattr(cls, f"track_{one.name}", _benchmark(one, cls.scenario))

    def setup(self, _values: "Values") -> None:
        """Skip a benchmark that the build cannot run.

        Raises:
            NotImplementedError: asv's word for that.
        """
        if not can_run(self.scenario):
            text = f"{self.scenario.id} needs the accelerator {self.scenario.accelerator}"
            raise NotImplementedError(text)


def _session(suite: type[Suite]) -> Callable[[Suite], "Values"]:
    def setup_cache(self: Suite) -> "Values":
        if not can_run(self.scenario):
            return {}
        from hybridwatch.watch.suite_session import measured

        return measured(self.scenario, self.tracked)

    # asv distinguishes sessions by module and line. The line is the same for all; the module must
    # not be, or the first class would measure for every other.
    setup_cache.__module__ = suite.__module__
    setup_cache.timeout = _SESSION_S  # type: ignore[attr-defined]  # asv reads it from the function
    return setup_cache


def _benchmark(one: Tracked, scenario: Scenario) -> Callable[[Suite, "Values"], Any]:
    def track(_self: Suite, values: "Values") -> Any:
        return _handed(one, values[one.name])

    track.__doc__ = one.metric.doc
    track.unit = one.unit  # type: ignore[attr-defined]  # asv reads it from the function
    track.pretty_name = f"{scenario.id}: {one.name}"  # type: ignore[attr-defined]  # likewise
    return track


def _handed(one: Tracked, values: tuple[float, ...]) -> Any:
    if not values:
        return float("nan")  # asv's word for skipped: this engine has no such number
    match one.form:
        case Form.WORST:
            return max(values)
        case Form.WRONG:
            return 1 - sum(values) / len(values)
        case Form.SAMPLES:
            return {"samples": list(values), "number": 1}
        case Form.INVERSE:
            return {"samples": [1 / value for value in values], "number": 1}
        case Form.REST:
            return {"samples": [1 - value for value in values], "number": 1}
