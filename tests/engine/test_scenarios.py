"""Every scenario sees its own bug on a real engine, and none where there is none.

``test_smoke_run.py`` shows it of the smoke group, which stands for the others wherever time is
short. One seed of each; ``hybridwatch controls --seeds 20`` is the long form.
"""

import pytest

from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.check import healthy_label, known_bad_label, require_installed
from hybridwatch.engines.fitting import find_model_runner
from hybridwatch.errors import EngineError
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.load import TrialContext
from hybridwatch.measurement.phase import measure
from hybridwatch.metrics import WRONG_TOKENS
from hybridwatch.records.run import Phase
from hybridwatch.scenarios.fixes import CATALOGUE
from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home
from tests.engine.conftest import BUILD, HEALTHY, KNOWN_BAD
from tests.engine.steps import assert_steps_are_seen
from tests.engine.unzeroed import wrong_tokens_with_unzeroed_state

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(600)]

DRAFTS_COME_AND_GO = "reported/i39273-draftless-step"
"""Its engine also shows that steps are counted rightly while it speculates."""

SCENARIOS = {
    one.id: one.on(find_model_runner(one, parse_label(BUILD)))
    for one in find(home() / "scenarios", [])
    if one.fits("cpu")
}
DEADLY = [name for name, one in SCENARIOS.items() if one.harm == "death"]
"""Scenarios whose known-bad does not live."""
# The first scenario has tests of its own, in padded_rows.
ALIVE = [
    name
    for name, one in SCENARIOS.items()
    if one.has_known_bad and name not in {*DEADLY, "smoke/padded-graph-rows"}
]
"""Scenarios whose known-bad lives and breaks a contract."""


@pytest.mark.parametrize("scenario_id", ALIVE)
def test_known_bad_is_distinguished_from_healthy(scenario_id, tmp_path):
    scenario, pool = _pool(scenario_id, tmp_path)
    with pool:
        broken = _contract(pool, KNOWN_BAD, tmp_path)
        # After the known-bad, so that damage which stayed would be seen.
        healthy = _contract(pool, HEALTHY, tmp_path)
        if scenario_id == DRAFTS_COME_AND_GO:
            _assert_accepted_drafts_are_no_shares(pool, tmp_path)
    assert set(healthy.values()) == {0.0}
    assert broken[CATALOGUE[scenario.fix].breaks] > 0
    assert (broken[WRONG_TOKENS] > 0) == (scenario.harm == "answers")


@pytest.mark.parametrize("scenario_id", [name for name in ALIVE if name.startswith("smoke/")])
def test_state_of_a_new_request_that_is_not_zeroed_is_heard(scenario_id, tmp_path):
    """It needs slots that are used again: that is what small pools are for."""
    _, pool = _pool(scenario_id, tmp_path)
    with pool:
        assert wrong_tokens_with_unzeroed_state(pool, HEALTHY, tmp_path) > 0


@pytest.mark.parametrize("scenario_id", DEADLY)
def test_known_bad_dies_and_healthy_lives(scenario_id, tmp_path):
    scenario, pool = _pool(scenario_id, tmp_path)
    assert scenario.harm == "death"
    with pool:
        with pytest.raises(EngineError):
            _contract(pool, KNOWN_BAD, tmp_path)
        assert not pool.is_alive(KNOWN_BAD)
        pool.discard(KNOWN_BAD)
        healthy = _contract(pool, HEALTHY, tmp_path)
    assert set(healthy.values()) == {0.0}


def _assert_accepted_drafts_are_no_shares(pool, work):
    """Each token of the load was either a request's own of a step, or an accepted draft."""
    pool.make_ready(HEALTHY)
    result, made = assert_steps_are_seen(TrialContext(pool, HEALTHY, work))
    accepted, requests = result["spec_decode_accepted_tokens"], result["completed"]
    used = made.tokens - made.shares
    assert 0 < used <= accepted
    # Accepted beyond a request's last token: less than a step's drafts each.
    assert accepted - used < pool.scenario.engine.speculation.drafts * requests


def _pool(scenario_id, work):
    """A scenario with an engine pool for its healthy build and its known-bad."""
    scenario = SCENARIOS[scenario_id]
    require_installed(parse_label(BUILD).spec)
    named = BUILD, scenario.fix, scenario.requires
    sides = tuple(parse_label(label(*named)) for label in (healthy_label, known_bad_label))
    return scenario, EnginePool(scenario, sides, home() / "models", work, print)


def _contract(pool, side, work):
    pool.make_ready(side)
    measured = measure(Phase.CONTRACT, TrialContext(pool, side, work))
    assert measured.unsupported == {}
    return {
        sample.metric: sample.values[0]
        for sample in measured.samples
        if sample.metric.startswith("contract.")
    }
