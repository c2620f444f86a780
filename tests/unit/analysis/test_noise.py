"""Which reds of single sessions stand against chance, such as the luck of a start."""

from dataclasses import replace

import numpy as np
import pytest

from hybridwatch.analysis import noise
from hybridwatch.analysis.noise import Sessions, lasting_reds
from tests.start_luck_worlds import (
    ASKED,
    LUCK,
    MODES,
    NIGHTS,
    NOW_AND_THEN,
    RARELY,
    SCENARIOS,
    STEP,
    Questions,
    Starts,
    lost_of,
    told_of,
    world,
)


def sessions(*effects: float, error: float = 0.005, red: float = 0.03, luck: float = 0.0):
    """One a night; the baseline's own luck, where it has any but in the last, is in the effects."""
    rng = np.random.default_rng(1)
    baselines = luck * rng.standard_normal(len(effects))
    baselines[-1] = 0.0
    values = np.array(effects) - baselines
    return Sessions(
        moments=np.arange(len(effects), dtype=np.int64),
        effects=values,
        errors=np.full(len(effects), error),
        baselines=baselines,
        reds=values > red,
    )


QUIET = [0.002, -0.003, 0.001, 0.0, -0.002, 0.003, 0.001, -0.001, 0.002, 0.0, -0.001, 0.001]
LUCKY = [0.03, -0.02, 0.035, -0.03, 0.01, -0.035, 0.03, 0.0, -0.025, 0.035, -0.03, 0.02]


def stands(*effects: float, **facts: float) -> list[bool]:
    own = sessions(*effects, **facts)
    return [bool(one) for one in lasting_reds(own, [own])]


def test_where_starts_are_alike_one_red_stands_by_itself() -> None:
    assert stands(*QUIET, 0.04)[-1]


def test_where_starts_differ_one_red_of_their_size_does_not() -> None:
    found = stands(*LUCKY, 0.05)
    assert not any(found)


def test_a_red_beyond_all_luck_stands_by_itself() -> None:
    assert stands(*LUCKY, 0.3)[-1]


def test_what_repeats_stands() -> None:
    assert stands(*LUCKY, *[0.12, 0.11, 0.13] * 2)[-6:] == [True] * 6


def test_a_lasting_change_does_not_excuse_itself() -> None:
    """Learned from what came before alone, and from differences: a step is one of many."""
    assert all(stands(*QUIET, *[0.06] * 10)[-10:])
    assert all(stands(*QUIET, *[0.06] * 10, *QUIET, 0.05)[-1:])


def test_a_young_question_is_not_taken_for_as_quiet_as_others() -> None:
    young = sessions(0.0, 0.05)
    later = replace(young, moments=young.moments + len(QUIET))
    assert not lasting_reds(later, [later, sessions(*QUIET)]).any()


def test_where_nothing_is_known_a_small_red_waits_for_others() -> None:
    assert stands(0.06) == [False]
    assert stands(*[0.06] * 5) == [False] * 5
    assert stands(*[0.06] * 7) == [True] * 7
    assert stands(0.2) == [True]


def test_a_young_question_learns_from_those_like_it() -> None:
    young = sessions(0.0, 0.16)
    lucky, quiet = sessions(*LUCKY), sessions(*QUIET)
    later = replace(young, moments=young.moments + len(LUCKY))
    assert not lasting_reds(later, [later, lucky]).any()
    assert lasting_reds(later, [later, quiet]).any()


def test_a_young_question_learns_from_its_own_few_sessions() -> None:
    assert any(stands(*[0.0] * 6, 0.16))
    assert not any(stands(0.0, 0.0, 0.1, -0.1, 0.0, 0.0, 0.16, red=0.105))


def test_luck_of_the_baseline_is_taken_off() -> None:
    """The baseline is the same build every night: where it is off, so is the effect."""
    lucky = 0.02 * np.random.default_rng(2).standard_normal(40)
    known = sessions(*lucky, 0.1, luck=0.02)
    unknown = replace(known, baselines=np.zeros_like(known.baselines))
    assert lasting_reds(known, [known])[-1]
    assert not lasting_reds(unknown, [unknown])[-1]


def test_starts_of_the_contender_differ_as_those_of_the_baseline_do() -> None:
    """Half of a series' starts are the baseline's: what they show, the contender may do as well."""
    calm = sessions(*QUIET * 2, 0.06)
    assert lasting_reds(calm, [calm])[-1]
    lucky = sessions(*QUIET * 2, 0.06, luck=0.03)
    assert not lasting_reds(lucky, [lucky])[-1]


def test_what_is_not_red_never_stands() -> None:
    own = sessions(*QUIET, 0.2)
    assert not lasting_reds(replace(own, reds=np.zeros_like(own.reds)), [own]).any()


SLOW_NOW_AND_THEN = [0.06 if night % 9 == 4 else effect for night, effect in enumerate(QUIET * 3)]


def test_slow_starts_that_come_now_and_then_are_luck() -> None:
    """The first beyond what is known may be told: nobody can know that there will be more."""
    assert sum(stands(*SLOW_NOW_AND_THEN, 0.06, 0.06)) <= 1
    assert all(stands(*SLOW_NOW_AND_THEN, *[0.06] * 5)[-5:])


def test_a_change_larger_than_slow_starts_stands() -> None:
    assert stands(*SLOW_NOW_AND_THEN, 0.12)[-1]


def test_slow_starts_of_the_baseline_or_of_another_scenario_count_as_well() -> None:
    gains = stands(*[-each for each in SLOW_NOW_AND_THEN], 0.06)
    assert not any(gains)
    slow, quiet = sessions(*SLOW_NOW_AND_THEN, 0.0), sessions(*QUIET * 3, 0.06)
    assert lasting_reds(quiet, [quiet])[-1]
    assert not lasting_reds(quiet, [quiet, slow])[-1]


def test_a_change_that_was_mended_is_no_slow_start() -> None:
    assert stands(*QUIET, *[0.06] * 5, *QUIET, 0.06)[-1]


@pytest.mark.parametrize("starts", [NOW_AND_THEN, RARELY])
def test_rare_slow_starts_open_no_alert_each_time(starts: Starts, monkeypatch) -> None:
    """Planted: what is slow now and then, taken for what differs by as much each time."""
    seeds = range(4)
    assert sum(told_of(seed, starts).false for seed in seeds) <= 1
    found = [told_of(seed, starts, STEP) for seed in seeds]
    assert all(0 < one.nights <= 30 for one in found)
    monkeypatch.setattr(noise, "_may_be_slow_starts", lambda *_: False)
    assert sum(told_of(seed, RARELY).false for seed in seeds) > 8


@pytest.mark.parametrize("starts", [LUCK, MODES])
def test_luck_of_starts_opens_no_alert_and_a_step_is_reported(starts: Starts) -> None:
    seeds = range(4)
    found = [told_of(seed, starts, STEP) for seed in seeds]
    assert sum(one.false for one in found) == 0
    assert sum(one.reds for one in found) > 60 * len(seeds)
    assert all(0 < one.nights <= 30 for one in found)
    assert all(told_of(seed, Starts(), STEP).nights == 1 for seed in seeds)


@pytest.mark.slow
@pytest.mark.parametrize("starts", [LUCK, MODES, RARELY])
def test_luck_of_starts_in_many_worlds(starts: Starts) -> None:
    seeds = range(30)
    # With one start in twenty slower: the first of a testbed, in some worlds.
    most = 0.05 * len(seeds) * SCENARIOS if starts == RARELY else 0
    assert sum(told_of(seed, starts).false for seed in seeds) <= most
    assert sum(0 < told_of(seed, starts, STEP).nights <= 14 for seed in seeds) >= 0.9 * len(seeds)


@pytest.mark.parametrize("asked", ASKED)
def test_answers_lost_by_chance_open_no_alert(asked: Questions) -> None:
    found = [lost_of(seed, asked) for seed in range(40)]
    assert sum(one.false for one in found) == 0
    assert sum(one.reds for one in found) > 0 or asked.flips < 0.01


@pytest.mark.parametrize("asked", ASKED)
def test_lost_answers_are_reported(asked: Questions) -> None:
    found = [lost_of(seed, replace(asked, lost=0.13)) for seed in range(20)]
    assert all(0 < one.nights <= 7 for one in found)


def test_reds_of_answers_taken_one_by_one_would_be_told(monkeypatch) -> None:
    """Planted: each night by itself, as a report sees it."""
    monkeypatch.setattr(noise, "_OF_ANSWERS", replace(noise._OF_ANSWERS, bar=1.6))
    assert sum(lost_of(seed, ASKED[-1]).false for seed in range(20)) > 10


def test_the_world_has_reds_that_are_luck() -> None:
    assert sum(own.reds.sum() for own in world(1, LUCK, 0.0)) > NIGHTS
