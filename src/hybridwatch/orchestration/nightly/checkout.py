"""Reads what a checkout has besides records: the gate's policy, scenarios and builds."""

import tomllib
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

import click
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from hybridwatch.analysis.policy import (
    ANY,
    MAX_AGE_DAYS,
    STRICT,
    Action,
    AlertBisect,
    Policy,
    Rule,
    covers,
)
from hybridwatch.analysis.report import find_reason
from hybridwatch.engines.builds import load_builds
from hybridwatch.errors import HybridwatchError, PolicyError, ScenarioError
from hybridwatch.history.checkout import Checkout
from hybridwatch.metrics import FAMILIES, list_metrics
from hybridwatch.records.run import Run
from hybridwatch.scenarios.load import Survey, survey
from hybridwatch.scenarios.validation import refusing_toml
from hybridwatch.system.home import home_or_shipped, is_extending, layers

if TYPE_CHECKING:
    from hybridwatch.analysis.calibration import Calibration

DEFAULT: Final = Path("ci") / "gate.toml"
"""The policy of a checkout."""
_OF_A_HOME: Final = Path("gate.toml")


def _known_metrics(pattern: str) -> str:
    """Refuse a pattern that names no metric: a typing error would leave a metric unguarded."""
    family, dot, member = pattern.partition(".")
    named = any(fnmatchcase(metric.id, pattern) for metric in list_metrics())
    if named or (dot and member and any(fnmatchcase(known, family) for known in FAMILIES)):
        return pattern
    raise PydanticCustomError("metric", "names no metric")


_Metrics = Annotated[str, AfterValidator(_known_metrics)]
_NAME: Final = r"[a-z0-9]+(-[a-z0-9]+)*(/[a-z0-9]+(-[a-z0-9]+)*)*"
_Scenarios = Annotated[str, Field(pattern=rf"^(\*|{_NAME})$", description='a group, an id or "*"')]
_Expected = Annotated[str, Field(pattern=f"^{_NAME}$", description="groups or ids")]
_Testbeds = Annotated[str, Field(pattern=r"^\S+$", description="ids of testbeds")]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _Rule(_Table):
    metric: _Metrics
    scenarios: _Scenarios = ANY
    action: Literal["block", "warn", "watch"]
    margin: Annotated[float, Field(ge=0.001, le=0.5)] | None = None
    known: Annotated[str, Field(pattern=r"^\S.{0,199}$", description="a reason, one line")] = ""


class _Bisect(_Table):
    on: Literal["confirmed"]
    minutes: Annotated[float, Field(ge=1, le=1440)]
    repo: str = ""
    base: str = ""


class _PolicyFile(_Table):
    expected: list[_Expected] = Field(default_factory=list)
    max_age_days: Annotated[float, Field(ge=0.1, le=365)] = MAX_AGE_DAYS
    testbeds: list[_Testbeds] = Field(default_factory=list)
    price_per_hour: Annotated[float, Field(ge=1e-6, le=1e6)] | None = None
    rule: list[_Rule] = Field(min_length=1)
    bisect: _Bisect | None = None

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        wrong = [*_useless(self.rule), *_without_margin(self.rule)]
        if wrong:
            raise PydanticCustomError("contradictions", "see wrong", {"wrong": wrong})
        return self


def _useless(rules: list[_Rule]) -> list[tuple[str, str]]:
    """Find the rules that never decide, because one before them fits whatever they fit."""
    return [
        (f"rule[{late}]", f"never decides: rule[{early}] comes first and covers all that it covers")
        for late, rule in enumerate(rules)
        for early, before in enumerate(rules[:late])
        if fnmatchcase(rule.metric, before.metric) and covers(before.scenarios, rule.scenarios)
    ][:1]


def _without_margin(rules: list[_Rule]) -> list[tuple[str, str]]:
    return [
        (f"rule[{at}].margin", "expected none: any broken contract counts, whatever its size")
        for at, rule in enumerate(rules)
        if rule.margin is not None and fnmatchcase("contract.", rule.metric.partition(".")[0] + ".")
    ]


def load_policy(path: Path) -> Policy:
    """Read a policy; ``PolicyError`` has a line for each wrong key."""
    with refusing_toml(path, _PolicyFile, PolicyError):
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise PolicyError(f"{path}: expected UTF-8 text, found other bytes: {error}") from None
        file = _PolicyFile.model_validate(tomllib.loads(text))
    search = file.bisect
    return Policy(
        tuple(
            Rule(one.metric, one.scenarios, Action(one.action), one.margin, one.known)
            for one in file.rule
        ),
        tuple(file.expected),
        file.max_age_days,
        tuple(file.testbeds),
        AlertBisect(search.minutes, search.repo, search.base) if search else None,
        file.price_per_hour,
    )


def takes_policy(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the argument ``policy``, the file already read."""
    return click.option(
        "--policy",
        type=click.Path(path_type=Path, dir_okay=False),
        callback=lambda _context, _option, path: load_policy(path) if path else policy_here(),
        help=f"Rules of the gate (docs/ci.md).  [default: {DEFAULT} here, or {_OF_A_HOME} of the "
        "home, where there is one]",
    )(verb)


def policy_here() -> Policy:
    """Read the policy where we are; without one every regression stops."""
    folder = home_or_shipped()
    file = find_policy(folder) if is_extending(folder) else DEFAULT
    return load_policy(file) if file.is_file() else STRICT


def second_look_here() -> Callable[[Run], str]:
    """Give what says that a run is measured again, also by the policy where we are."""
    return partial(find_reason, policies=(STRICT, policy_here()))


def find_policy(folder: Path) -> Path:
    """Say where the policy of a home or a checkout lies, if it has one."""
    return folder / (_OF_A_HOME if is_extending(folder) else DEFAULT)


_CALIBRATION: Final = Path("docs") / "calibration.json"


def checkout_here() -> Checkout:
    """Read the checkout around us; pages must show records although a scenario is half written."""
    problems: list[str] = []
    builds: dict[str, str] = {}
    policy = STRICT  # one that is wrong hides no alert
    try:
        root = home_or_shipped()
    except HybridwatchError as error:
        return Checkout(problems=(str(error),))
    try:
        builds = {name: spec.release for name, spec in load_builds(root).items()}
    except HybridwatchError as error:
        problems += str(error).splitlines()
    try:
        found = survey(root / "scenarios")
    except ScenarioError as error:
        found = Survey((), (str(error),))
    problems += found.problems
    try:
        if (file := find_policy(root)).is_file():
            policy = load_policy(file)
    except HybridwatchError as error:
        problems += str(error).splitlines()
    return Checkout(
        scenarios={scenario.id: scenario for scenario in found.scenarios},
        builds=builds,
        policy=policy,
        calibration=lambda: _calibration(layers(root / _CALIBRATION.parent)[0] / _CALIBRATION.name),
        problems=tuple(problems),
    )


def _calibration(path: Path) -> "Calibration | None":
    from hybridwatch.analysis.calibration import read_calibration  # waits for scipy.stats

    return read_calibration(path)
