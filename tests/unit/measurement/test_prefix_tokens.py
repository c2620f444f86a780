"""Tokens asked of the prefix cache are metrics where any were asked, and otherwise are none."""

from hybridwatch.measurement.phase import CONTRACTS, prefix_tokens_in
from hybridwatch.metrics import Direction, Kind, find_metric

COUNTED = {
    "prefix_tokens_asked": 900,
    "prefix_tokens_hit": 384,
    "prefix_tokens_attention": 512,
    "prefix_tokens_mamba": 384,
    "repeats": 3,
}


def test_each_count_is_a_metric_that_a_scenario_can_expect():
    found = prefix_tokens_in(COUNTED)
    assert found == {
        "prefix_tokens.asked": 900,
        "prefix_tokens.hit": 384,
        "prefix_tokens.attention": 512,
        "prefix_tokens.mamba": 384,
    }
    for name in found:
        metric = find_metric(name)
        assert (metric.kind, metric.better) == (Kind.COUNT, Direction.HIGHER)
        assert metric.kind.can_be_expected


def test_an_engine_that_nobody_asked_has_none():
    assert prefix_tokens_in({**COUNTED, "prefix_tokens_asked": 0}) == {}
    assert prefix_tokens_in({"replays": 3}) == {}


def test_what_a_release_cannot_say_is_left_out():
    counted = {name: COUNTED[name] for name in ("prefix_tokens_asked", "prefix_tokens_hit")}
    assert set(prefix_tokens_in(counted)) == {"prefix_tokens.asked", "prefix_tokens.hit"}


def test_the_rules_of_the_prefix_cache_are_contracts():
    assert {"prefix_hit_uncached", "cached_states_off", "repeats_missed"} <= set(CONTRACTS)
