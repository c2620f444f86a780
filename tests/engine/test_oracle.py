"""The right answers in oracles/ are those of a fresh computation; no engine is started."""

import pytest
from click.testing import CliRunner

from hybridwatch.cli.main import cli
from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.check import require_installed
from hybridwatch.measurement.right_answers import by_transformers, find_deviations, find_path, load
from hybridwatch.scenarios.load import load_scenario
from hybridwatch.system.home import home
from tests.engine.conftest import BUILD

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("models or oracles have changed, so transformers computes them afresh"),
]

SCENARIO = "smoke/single-token-extend"


@pytest.fixture(scope="module", autouse=True)
def build():
    """Its environment has transformers."""
    request = parse_label(BUILD)
    require_installed(request.spec)
    return request


def all_kept() -> list[str]:
    """Scenarios of which there are right answers."""
    root = home() / "oracles"
    return sorted(
        path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.json")
    )


@pytest.mark.parametrize(
    "scenarios",
    [
        pytest.param([name for name in all_kept() if name.startswith("smoke/")], id="smoke"),
        # Seconds each; those of the smoke group stand for the others wherever time is short.
        pytest.param(all_kept(), id="all", marks=pytest.mark.slow),
    ],
)
def test_every_kept_answer_is_what_transformers_says_now(scenarios):
    words = [] if scenarios == all_kept() else scenarios
    checked = CliRunner().invoke(cli, ["oracle", "check", "--build", BUILD, *words])
    assert checked.exit_code == 0, checked.output
    assert {line.partition(":")[0] for line in checked.output.splitlines()} == set(scenarios)


def test_drafts_save_time_and_change_nothing(build):
    """Wrong drafts are followed no further than they are right."""
    root = home() / "scenarios"
    scenario = load_scenario(root / f"{SCENARIO}.toml", root)
    kept = load(find_path(home(), SCENARIO))
    assert kept is not None
    bent = [[one.__class__(one.prompt, (*one.tokens[:2], 0)) for one in kept.trials[0]]]
    _, fresh = by_transformers(scenario, home() / "models" / kept.model, build, 1, bent)
    assert [one.tokens for one in fresh[0]] == [one.tokens for one in kept.trials[0]]
    assert list(find_deviations(kept.trials[:1], fresh)) == []
