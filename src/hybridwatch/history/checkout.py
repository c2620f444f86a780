"""What a checkout has besides records: scenarios, builds, policy, calibration."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hybridwatch.analysis.policy import STRICT, Policy
from hybridwatch.scenarios.scenario import Scenario

if TYPE_CHECKING:  # it waits for scipy.stats, which few screens need
    from hybridwatch.analysis.calibration import Calibration


@dataclass(frozen=True, slots=True)
class Checkout:
    """What is known of the suite itself, such as releases by build; any of it may be missing."""

    scenarios: Mapping[str, Scenario] = field(default_factory=dict)
    builds: Mapping[str, str] = field(default_factory=dict)
    policy: Policy = STRICT
    calibration: Callable[[], "Calibration | None"] = lambda: None
    problems: tuple[str, ...] = ()
