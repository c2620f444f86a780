"""Beliefs about the place of a change, and what they make of noisy measurements."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridwatch.orchestration.bisect.posterior import (
    Costs,
    Effect,
    build_belief,
    compute_effect,
    find_timed,
    next_choice,
)

COSTS = Costs(start=1.0, block=0.1)
CLEAR = Effect(0.06, 0.002, 0.01)


def a_machine(change, *, noise=0.01, size=0.06, dumb=(), seed=1):
    """Answers measurements, and remembers them."""
    rng, made = np.random.default_rng(seed), []

    def ask(choice):
        made.append(choice)
        if choice.at in dumb:
            return None
        center = size if choice.at >= change else 0.0
        return (center + noise * rng.standard_normal(choice.blocks)).tolist()

    return ask, made


@given(st.lists(st.floats(0.05, 4), min_size=2, max_size=80), st.data())
def test_masses_stay_probabilities_and_move_towards_what_was_seen(weights, data):
    belief = build_belief(weights)
    at = data.draw(st.integers(1, len(weights) - 1))
    before = belief.changed_at([at])[0]
    after = belief.after(at, np.array([-3.0]), np.array([-1.0]))
    assert after.masses.sum() == pytest.approx(1)
    assert before <= after.changed_at([at])[0] <= 1


@given(st.integers(2, 60), st.data())
def test_ranges_cover_every_position_once(last, data):
    belief = build_belief([1.0] * last)
    for at in data.draw(st.frozensets(st.integers(1, last - 1))):
        belief = belief.without(at)
    covered = [at for one in belief.ranges() for at in range(one.good + 1, one.bad + 1)]
    assert covered == list(range(1, last + 1))
    whole = belief.credible()
    assert whole.mass >= 0.95 - 1e-9
    assert {whole.good, whole.bad} <= {0, last, *belief.open}


def chosen(belief, effect, costs=COSTS):
    """The next measurement, of which there is one."""
    choice = next_choice(belief, effect, costs)
    assert choice is not None
    return choice


def test_first_measurement_halves_and_costs_decide_its_length():
    choice = chosen(CLEAR.belief([1.0] * 64), CLEAR)
    assert (choice.at, choice.blocks) == (32, 1)
    noisy = Effect(0.03, 0.01, 0.05)
    belief = noisy.belief([1.0] * 64)
    assert chosen(belief, noisy, Costs(10.0, 0.01)).blocks == 20
    assert chosen(belief, noisy, Costs(0.0, 1.0)).blocks == 1


def test_what_nobody_expects_to_be_the_change_weighs_little():
    weights = [0.01] * 60 + [1.0] * 4
    choice = chosen(CLEAR.belief(weights), CLEAR)
    assert choice.at in {61, 62, 63}


def test_no_choice_without_a_position_between_the_ends():
    assert next_choice(CLEAR.belief([1.0]), CLEAR, COSTS) is None


@pytest.mark.parametrize("change", [1, 2, 31, 63, 64])
def test_clear_change_is_found_in_few_measurements(change):
    ask, made = a_machine(change)
    found = find_timed(CLEAR.belief([1.0] * 64), CLEAR, COSTS, ask).best()
    assert (found.good, found.bad) == (change - 1, change)
    assert found.mass >= 0.95
    assert len(made) <= 12


def test_positions_that_cannot_be_measured_leave_a_range():
    ask, made = a_machine(30, dumb={29, 30, 31})
    found = find_timed(CLEAR.belief([1.0] * 64), CLEAR, COSTS, ask).best()
    assert (found.good, found.bad) == (28, 32)
    assert len({one.at for one in made if one.at in {29, 30, 31}}) == len(
        [one for one in made if one.at in {29, 30, 31}]
    )


def test_search_without_time_ends_with_a_range_that_holds_the_change():
    ask, made = a_machine(30, noise=0.05, size=0.03)
    left = iter([True] * 4)
    effect = Effect(0.03, 0.01, 0.05)
    belief = find_timed(effect.belief([1.0] * 64), effect, COSTS, ask, lambda: next(left, False))
    found = belief.credible()
    assert len(made) == 4
    assert found.good < 30 <= found.bad
    assert found.mass >= 0.95 - 1e-9


def test_one_disturbed_session_does_not_decide():
    belief = CLEAR.belief([1.0] * 64)
    once = belief.after(32, *CLEAR.log_likelihoods([0.5] * 5))
    assert 0.2 < once.changed_at([32])[0] < 0.8


def test_effect_of_the_ends_is_not_moved_by_a_few_disturbed_blocks():
    rng = np.random.default_rng(3)
    blocks = (0.06 + 0.01 * rng.standard_normal(20)).tolist()
    calm, disturbed = compute_effect([blocks]), compute_effect([[*blocks[:-2], 1.0, 1.2]])
    assert calm.size == pytest.approx(0.06, abs=0.008)
    assert disturbed.size == pytest.approx(calm.size, abs=0.008)
    assert disturbed.noise < 2 * calm.noise


def test_size_that_the_ends_overstated_is_put_right_on_the_way():
    overstated = Effect(0.05, 0.012, 0.02)
    ask, made = a_machine(30, noise=0.02, size=0.03)
    belief = find_timed(overstated.belief([1.0] * 64), overstated, COSTS, ask)
    assert abs(float(belief.columns @ overstated.sizes) - 0.03) < 0.012
    found = belief.best()
    assert found.good < 30 <= found.bad
    assert made


def test_sessions_that_fit_no_place_show_how_far_sessions_lie_apart():
    belief = CLEAR.belief([1.0] * 64)
    calm, restless = belief, belief
    for at, off in ((20, 0.02), (24, -0.02), (40, 0.08), (44, 0.03), (16, 0.025)):
        center = 0.06 if at >= 32 else 0.0
        calm = calm.after(at, *CLEAR.log_likelihoods([center] * 5))
        restless = restless.after(at, *CLEAR.log_likelihoods([off] * 5))
    scatter = CLEAR.scatters
    assert restless.columns @ scatter > 3 * (calm.columns @ scatter)
    # The same session then tells less.
    told = [one.after(32, *CLEAR.log_likelihoods([0.06] * 5)) for one in (calm, restless)]
    gained = [
        after.changed_at([32])[0] - before.changed_at([32])[0]
        for before, after in zip((calm, restless), told, strict=True)
    ]
    assert gained[0] > gained[1]


def test_session_whose_own_blocks_lie_far_apart_tells_less():
    belief = CLEAR.belief([1.0] * 64)
    calm = belief.after(32, *CLEAR.log_likelihoods([0.05, 0.06, 0.06, 0.07]))
    wild = belief.after(32, *CLEAR.log_likelihoods([-0.1, 0.06, 0.06, 0.2]))
    assert calm.changed_at([32])[0] > wild.changed_at([32])[0] > 0.5


def test_blocks_that_start_engines_again_are_sessions():
    blocks = [0.01, 0.05, 0.04, 0.06]
    effect = compute_effect([blocks[:2], blocks[2:]], restarts=True)
    assert effect == compute_effect([[one] for one in blocks], restarts=True)
    belief = effect.belief([1.0] * 64)
    together, one_by_one = belief, belief
    together = together.after(32, *effect.log_likelihoods(blocks))
    for block in blocks:
        one_by_one = one_by_one.after(32, *effect.log_likelihoods([block]))
    assert together.joint == pytest.approx(one_by_one.joint)
    assert chosen(belief, effect, Costs(10.0, 0.01)).blocks == 1


def test_duets_of_the_ends_that_lie_far_apart_by_chance_do_not_make_the_others_tell_less():
    """The ends' few blocks say little of the noise; those of all other builds say more."""
    rng = np.random.default_rng(2)
    effect = compute_effect([[0.01, 0.09], [0.02, 0.08]], restarts=True)
    belief = effect.belief([1.0] * 64)
    for _ in range(9):
        unchanged, changed = 0.012 * rng.standard_normal(2) + (0.0, 0.04)
        belief = belief.after(31, *effect.log_likelihoods([unchanged]))
        belief = belief.after(32, *effect.log_likelihoods([changed]))
    assert belief.best().bad == 32
    assert belief.best().mass >= 0.99


def test_effect_that_differs_from_start_to_start_does_not_make_unchanged_positions_doubtful():
    """Such as were measured: a planted commit that costs 3 to 8 %, and steady ones before it."""
    effect = compute_effect([[0.044, 0.037], [0.059, 0.039]], restarts=True)
    belief = effect.belief([1.0] * 64)
    steady = np.where(effect.variations == 0, belief.joint, 0.0)
    taken_for_steady = replace(belief, joint=steady / steady.sum())
    seen = ((32, 0.069), (16, 0.085), (8, 0.0), (11, 0.035), (11, 0.033), (10, 0.0), (10, 0.002))
    for at, ratio in seen:
        likelihoods = effect.log_likelihoods([ratio])
        belief = belief.after(at, *likelihoods)
        taken_for_steady = taken_for_steady.after(at, *likelihoods)
    assert belief.columns @ effect.variations > 0.2  # 0.16 before
    assert belief.best().bad == 11
    assert belief.best().mass > 0.95
    assert taken_for_steady.best().mass < 0.8


def test_two_sessions_of_the_ends_that_disagree_leave_the_effect_open():
    same, other = compute_effect([[0.06] * 10] * 2), compute_effect([[0.06] * 10, [0.02] * 10])
    assert same.is_clear
    assert not other.is_clear


def test_pair_side_by_side_tells_of_what_lies_between_alone():
    belief = CLEAR.belief([1.0] * 64)
    found = belief.after(32, *CLEAR.log_likelihoods([0.06] * 20), reference=31)
    assert found.best().bad == 32
    gone = belief.after(32, *CLEAR.log_likelihoods([0.0] * 20), reference=31)
    assert gone.masses[31] < 0.001
    assert gone.masses[30] == pytest.approx(gone.masses[62])
