"""The right answers in oracles/ are those of a fresh computation; no engine is started."""

import pytest
from click.testing import CliRunner

from hybridwatch.cli.main import cli
from hybridwatch.engine.builds import home, parse_label
from hybridwatch.engine.check import require_installed
from hybridwatch.measure.make_oracle import by_transformers
from hybridwatch.quality.oracle import deviations_of, load, path_of
from hybridwatch.scenario.load import load_scenario
from tests.engine.conftest import BUILD

pytestmark = pytest.mark.engine

SCENARIO = "smoke/single-token-extend"


@pytest.fixture(scope="module", autouse=True)
def build():
    """Its environment has transformers."""
    request = parse_label(BUILD)
    require_installed(request.spec)
    return request


def test_every_kept_answer_is_what_transformers_says_now():
    checked = CliRunner().invoke(cli, ["oracle", "check", "--build", BUILD])
    assert checked.exit_code == 0, checked.output
    kept = [path.relative_to(home() / "oracles") for path in (home() / "oracles").rglob("*.json")]
    names = {path.with_suffix("").as_posix() for path in kept}
    assert {line.partition(":")[0] for line in checked.output.splitlines()} == names


def test_drafts_save_time_and_change_nothing(build):
    """Wrong drafts are followed no further than they are right."""
    root = home() / "scenarios"
    scenario = load_scenario(root / f"{SCENARIO}.toml", root)
    kept = load(path_of(home(), SCENARIO))
    assert kept is not None
    bent = [[one.__class__(one.prompt, (*one.tokens[:2], 0)) for one in kept.trials[0]]]
    _, fresh = by_transformers(scenario, home() / "models" / kept.model, build, 1, bent)
    assert [one.tokens for one in fresh[0]] == [one.tokens for one in kept.trials[0]]
    assert list(deviations_of(kept.trials[:1], fresh)) == []
