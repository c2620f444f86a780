"""What a checkout says beside its records: scenarios, builds, policy, calibration."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hybridwatch.analysis.policy import STRICT, Policy
from hybridwatch.scenario.scenario import Scenario

if TYPE_CHECKING:  # its package waits for scipy.stats, which few screens need
    from hybridwatch.analysis.calibration.figure import Figure


@dataclass(frozen=True, slots=True)
class Calibration:
    """How often our rules are right, as ``docs/calibration.json`` tells it.

    Attributes:
        command: What made it.
        sections: Figures under the title of their question.
    """

    command: str
    sections: tuple[tuple[str, tuple["Figure", ...]], ...]

    @property
    def promised(self) -> tuple["Figure", ...]:
        """The figures that have a bound."""
        return tuple(f for _, figures in self.sections for f in figures if f.bound is not None)


@dataclass(frozen=True, slots=True)
class Checkout:
    """What is known of the suite itself. Everything may be missing: records stand alone.

    Attributes:
        scenarios: By id.
        builds: Release by name, as ``engine/builds.toml`` lists them.
        policy: Of the gate.
        calibration: Reads it, when it is asked for; ``None`` where it was never made.
        problems: What could not be read, a line each.
    """

    scenarios: Mapping[str, Scenario] = field(default_factory=dict)
    builds: Mapping[str, str] = field(default_factory=dict)
    policy: Policy = STRICT
    calibration: Callable[[], Calibration | None] = lambda: None
    problems: tuple[str, ...] = ()
