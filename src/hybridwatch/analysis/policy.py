"""What is expected of which metric in which scenario, and what becomes of a change.

Without a rule that fits, everything counts with the metric's own margin.
"""

from dataclasses import dataclass, replace
from enum import Enum
from fnmatch import fnmatchcase
from typing import Final

from hybridwatch.metrics import Kind, Metric

ANY: Final = "*"
MAX_AGE_DAYS: Final = 2.0
"""A night that failed once is made up for in the next one; two silent nights are trouble."""


class Action(Enum):
    """What a regression leads to."""

    BLOCK = "block"
    """The gate fails."""
    WARN = "warn"
    """It is shown, and the gate passes."""
    WATCH = "watch"
    """No person is notified; the report has it all the same."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What holds for some metrics in some scenarios; ``ci/gate.toml`` says what each key means."""

    metric: str
    scenarios: str = ANY
    action: Action = Action.BLOCK
    margin: float | None = None
    known: str = ""

    def fits(self, scenario_id: str, metric_id: str) -> bool:
        """Whether the rule speaks of this metric of this scenario."""
        return covers(self.scenarios, scenario_id) and fnmatchcase(metric_id, self.metric)


@dataclass(frozen=True, slots=True)
class AlertBisect:
    """What a night may search by itself once an alert is confirmed, on its own machine.

    Attributes:
        minutes: After so many in a night, over all alerts, no other measurement begins.
        repo: A clone of vLLM, whose commits are searched; empty for releases alone.
        base: The build that commits are laid over; empty for the nearest installed release.
    """

    minutes: float
    repo: str = ""
    base: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    """All rules of a gate, of which the first that fits decides; ``ci/gate.toml`` has the keys.

    ``price_per_hour`` is the machine's, in any currency; ``None`` if no cost is shown.
    """

    rules: tuple[Rule, ...] = ()
    expected: tuple[str, ...] = ()
    max_age_days: float = MAX_AGE_DAYS
    testbeds: tuple[str, ...] = ()
    bisect: AlertBisect | None = None
    price_per_hour: float | None = None

    def rule_for(self, scenario_id: str, metric_id: str) -> Rule:
        """Find the rule that decides; one that blocks where none fits."""
        fitting = (rule for rule in self.rules if rule.fits(scenario_id, metric_id))
        return next(fitting, Rule(ANY))

    def action_for(self, scenario_id: str, metric: Metric) -> Action:
        """Say what a regression of a metric leads to."""
        return self.rule_for(scenario_id, metric.id).action

    def expects(self, scenario_id: str) -> bool:
        """Whether a scenario must be measured; every one where nothing is expected by name."""
        return not self.expected or any(covers(name, scenario_id) for name in self.expected)

    def applied(self, scenario_id: str, metric: Metric) -> Metric:
        """Give a metric the margin that the policy allows it; a broken contract has none."""
        margin = self.rule_for(scenario_id, metric.id).margin
        if margin is None or metric.kind is Kind.EXACT:
            return metric
        return replace(metric, margin=margin, relevance=margin)


STRICT: Final = Policy()
"""Holds where no policy was written: every regression stops."""


def covers(scenarios: str, scenario_id: str) -> bool:
    """Whether a scenario's id is meant by an id, a group or ``*``."""
    return scenarios in {ANY, scenario_id} or scenario_id.startswith(f"{scenarios.rstrip('/')}/")
