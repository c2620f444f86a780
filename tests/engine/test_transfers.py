"""A pair whose transfer fails answers with an error; the first release here passes it over."""

import pytest

from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.check import require_installed
from hybridwatch.scenarios.load import load_scenario
from hybridwatch.system.home import home
from hybridwatch_lab.transfers import SCENARIO, Outcome, as_it_is, fails, late, open_pair, twice

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("two engines and real NIXL between them"),
    pytest.mark.timeout(900),
]


@pytest.mark.parametrize(
    ("build", "failed"), [("cpu-0.27.1", Outcome.WRONG), ("cpu-0.31.0", Outcome.ERROR)]
)
def test_a_handle_that_no_longer_holds(build: str, failed: Outcome) -> None:
    """docs/findings.md, 27: the day a release mends ``late`` this is to say so."""
    side = parse_label(build)
    require_installed(side.spec)
    root = home() / "scenarios"
    with open_pair(load_scenario(root / f"{SCENARIO}.toml", root), side) as asker:
        assert as_it_is(asker) is Outcome.RIGHT
        assert twice(asker) is Outcome.RIGHT
        assert fails(asker) is failed
        assert late(asker) in {Outcome.OTHERS, Outcome.WRONG}
        # What went wrong harms no request after it.
        assert as_it_is(asker) is Outcome.RIGHT
