"""What tests of several engines share: the builds' names and the scenario of most of them."""

import pytest

from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.check import require_installed
from hybridwatch.scenarios.load import load_scenario
from hybridwatch.system.home import home

HEALTHY, KNOWN_BAD = 0, 1
BUILD = "cpu-0.27.1"


@pytest.fixture(scope="session")
def sides():
    """The healthy build and the same without the fix."""
    pair = (parse_label(BUILD), parse_label(f"{BUILD}~padded-rows-prefilling"))
    require_installed(pair[0].spec)
    return pair


@pytest.fixture(scope="session")
def scenario():
    """The smoke scenario, its load cut down."""
    root = home() / "scenarios"
    whole = load_scenario(root / "smoke" / "padded-graph-rows.toml", root)
    load = whole.workload.generation.model_copy(update={"prompts": 12})
    workload = whole.workload.model_copy(update={"generation": load})
    return whole.model_copy(update={"workload": workload})
