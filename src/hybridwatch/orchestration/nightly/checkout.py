"""Reads what a checkout says beside its records, as far as it can be read."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from hybridwatch.analysis.policy import STRICT, Policy
from hybridwatch.engines.builds import load_builds
from hybridwatch.errors import HybridwatchError, ScenarioError
from hybridwatch.history.checkout import Checkout
from hybridwatch.orchestration.nightly.policy import find_policy, load_policy
from hybridwatch.scenarios.load import Survey, survey
from hybridwatch.system.home import home_or_shipped, layers

if TYPE_CHECKING:
    from hybridwatch.analysis.calibration.figure import Calibration

_CALIBRATION: Final = Path("docs") / "calibration.json"


def checkout_here() -> Checkout:
    """Read the checkout around us; what is wrong with it is reported, not raised.

    A page that shows records must not fail because a scenario is half written.
    """
    problems: list[str] = []
    try:
        root = home_or_shipped()
    except HybridwatchError as error:
        return Checkout(problems=(str(error),))
    try:
        builds = {name: spec.release for name, spec in load_builds(root).items()}
    except HybridwatchError as error:
        builds, problems = {}, [*problems, *str(error).splitlines()]
    found = _surveyed(root / "scenarios")
    policy, wrong = _policy(find_policy(root))
    return Checkout(
        scenarios={scenario.id: scenario for scenario in found.scenarios},
        builds=builds,
        policy=policy,
        calibration=lambda: _calibration(layers(root / _CALIBRATION.parent)[0] / _CALIBRATION.name),
        problems=(*problems, *found.problems, *wrong),
    )


def _calibration(path: Path) -> "Calibration | None":
    from hybridwatch.analysis.calibration.figure import read_calibration  # waits for scipy.stats

    return read_calibration(path)


def _surveyed(root: Path) -> Survey:
    try:
        return survey(root)
    except ScenarioError as error:
        return Survey((), (str(error),))


def _policy(path: Path) -> tuple[Policy, tuple[str, ...]]:
    """Read the policy; one that is wrong hides no alert."""
    if not path.is_file():
        return STRICT, ()
    try:
        return load_policy(path), ()
    except HybridwatchError as error:
        return STRICT, tuple(str(error).splitlines())
