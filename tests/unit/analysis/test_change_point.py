"""The history detector: what it finds, what it leaves in peace, and what it refuses."""

import itertools
import math

import numpy as np
import pytest

from hybridwatch.analysis.change_point import HistoryState, noise, scan, segmentation
from hybridwatch.analysis.change_point.examine import examine
from hybridwatch.analysis.change_point.place import ChangePlace
from hybridwatch.errors import HistoryError
from hybridwatch.metrics import Kind

LEVEL = 100.0
EXAMINE = "hybridwatch.analysis.change_point.examine"


def random(seed=7):
    return np.random.default_rng(seed)


def noisy(n, cv=0.01, seed=7):
    return LEVEL * (1 + random(seed).normal(0, cv, n))


def with_step(values, at, size=0.05):
    stepped = values.copy()
    stepped[at:] *= 1 + size
    return stepped


def alike(n, correlation, seed):
    """Autoregressive noise of order one, standard deviation 2 %."""
    shocks = random(seed).normal(0, 1, n + 50)
    state, series = 0.0, []
    for shock in shocks:
        state = correlation * state + shock
        series.append(state)
    return LEVEL * (1 + 0.02 * math.sqrt(1 - correlation**2) * np.array(series[50:]))


def change_points(values, **options):
    return examine(values, **options).points


def places(values, **options):
    return [point.index for point in change_points(values, **options)]


@pytest.mark.parametrize("size", [0.05, -0.05])
@pytest.mark.parametrize("at", [10, 50, 88])
def test_a_step_is_found_where_it_is_and_as_large_as_it_is(at, size):
    (point,) = change_points(with_step(noisy(100), at, size))
    assert point.index == at
    assert point.interval.low < size < point.interval.high
    assert point.effect == pytest.approx(size, abs=0.01)
    assert point.state is HistoryState.CONFIRMED
    assert f"{point.state}" == "confirmed"


def test_a_young_step_is_suspected_first_and_confirmed_when_the_place_comes_back():
    series = with_step(noisy(40), 30)
    states = {n: [p.state for p in change_points(series[:n])] for n in (31, 33, 36)}
    assert states == {31: [], 33: [HistoryState.SUSPECTED], 36: [HistoryState.CONFIRMED]}


def test_two_steps_and_an_excursion_between_equal_levels_are_found():
    assert places(with_step(with_step(noisy(90), 30), 60)) == [30, 60]
    assert places(with_step(with_step(noisy(90), 40), 50, -1 / 21)) == [40, 50]


def test_a_scan_without_excursions_misses_one(monkeypatch):
    # What the two-sided search is for; without it the test above would not tell.
    monkeypatch.setattr(scan, "best_excursion", lambda _: scan.NOWHERE)
    short = with_step(with_step(noisy(300, cv=0.02), 150), 157, -1 / 21)
    blind = places(short)
    monkeypatch.undo()
    assert (blind, len(places(short))) == ([], 2)


def test_outliers_alone_are_no_change_even_two_in_a_row():
    series = noisy(100)
    series[[20, 50, 51, 97, 98]] *= 1.5
    assert places(series) == []


def test_slow_drift_is_reported_as_drift_and_a_step_within_it_as_a_step():
    slope = np.linspace(1, 1.1, 100)
    drifting = examine(noisy(100) * slope)
    assert drifting.points == ()
    (drift,) = drifting.drifts
    assert drift.effect == pytest.approx(0.1, abs=0.02)
    assert places(with_step(noisy(100) * slope, 50, 0.1)) == [50]


def test_a_drift_is_a_step_to_who_knows_no_slope(monkeypatch):
    monkeypatch.setattr("hybridwatch.analysis.change_point.scan.FEWEST_OF_LINE", 10**9)
    monkeypatch.setattr("hybridwatch.analysis.change_point.place.SHORTEST", 10**9)
    assert places(noisy(100) * np.linspace(1, 1.1, 100)) != []


def placed(at, seeds=40, size=0.06):
    """By how many points each of so many steps is placed too late."""
    found = [change_points(with_step(noisy(90, seed=seed), at, size)) for seed in range(seeds)]
    return [min((point.index - at for point in each), key=abs) for each in found]


@pytest.mark.parametrize("at", [8, 45, 84])
def test_a_step_is_placed_neither_early_nor_late_wherever_it_is(at):
    late = placed(at)
    assert sum(map(bool, late)) <= 1


def test_the_search_alone_places_young_steps_early(monkeypatch):
    # What weighing the places is for; without it the test above would not tell.
    monkeypatch.setattr(
        f"{EXAMINE}.place_of", lambda _values, _unit, cut: ChangePlace(cut, cut, cut)
    )
    late = placed(84)
    assert sum(at < 0 for at in late) >= 2
    assert sum(at > 0 for at in late) == 0


KINDS = {
    "normal": lambda draw, n: draw.normal(0, 0.02, n),
    "heavy tails": lambda draw, n: 0.012 * draw.standard_t(3, n),
    "two modes": lambda draw, n: 0.02 * draw.choice((-0.9, 0.9), n) + draw.normal(0, 0.009, n),
    "alike": lambda draw, n: alike(n, 0.5, int(draw.integers(2**32))) / LEVEL - 1,
}


def held(kind, seeds=40):
    """How many of the ranges hold the true place of a step of 5 %."""
    found = 0, 0
    for seed in range(seeds):
        draw = random(seed)
        at = int(draw.integers(8, 82))
        series = with_step(LEVEL * (1 + KINDS[kind](draw, 90)), at)
        near = [point for point in change_points(series) if abs(point.index - at) <= 10]
        assert all(point.first <= point.index <= point.last for point in near)
        holds = sum(point.first <= at <= point.last for point in near)
        found = found[0] + len(near), found[1] + holds
    return found[1] / found[0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_range_of_places_holds_the_true_one(kind):
    assert held(kind) >= 0.93


def test_the_likeliest_place_alone_is_too_few(monkeypatch):
    monkeypatch.setattr("hybridwatch.analysis.change_point.place.CONFIDENCE", 0.0)
    assert held("normal") < 0.93


def test_what_has_no_noise_changes_at_one_place():
    ranges = [
        (point.first, point.last)
        for values, kind in (([3.0] * 40 + [3.3] * 5, None), ([0, 0, 2], Kind.EXACT))
        for point in change_points(values, kind=kind)
    ]
    assert ranges == [(40, 40), (2, 2)]


def with_drift(before, nights, behind, size, seed):
    level = 1 + size * np.clip((np.arange(before + nights + behind) - before + 1) / nights, 0, 1)
    return noisy(before + nights + behind, seed=seed) * level


def told_drifts(before, behind, size=0.08, seeds=12):
    """Drifts of so many series of which nothing else is told."""
    found = [examine(with_drift(before, 40, behind, size, seed)) for seed in range(seeds)]
    return [each.drifts[0] for each in found if len(each.drifts) == 1 and not each.points]


@pytest.mark.parametrize(
    ("before", "behind", "size"), [(50, 0, 0.08), (30, 20, -0.08), (0, 40, 0.08)]
)
def test_a_slow_drift_is_no_step_and_its_beginning_is_known(before, behind, size):
    drifts = told_drifts(before, behind, size)
    assert len(drifts) >= 11
    assert sum(drift.first <= max(before, 1) <= drift.last for drift in drifts) >= 11
    assert np.mean([drift.per_point for drift in drifts]) == pytest.approx(size / 40, rel=0.15)


def test_the_check_of_drifts_can_fail(monkeypatch):
    monkeypatch.setattr(f"{EXAMINE}.ramp_instead", lambda *_: None)
    assert len(told_drifts(50, 0)) < 4


def test_two_steps_in_one_direction_are_no_drift():
    found = [
        examine(with_step(with_step(noisy(90, seed=seed), 30), 60)).drifts for seed in range(20)
    ]
    assert sum(map(len, found)) <= 1


def alarms_in_alike_noise():
    return sum(len(places(alike(100, 0.7, seed))) for seed in range(60))


def test_noise_whose_neighbours_are_alike_rarely_alarms():
    assert alarms_in_alike_noise() <= 3


def test_the_check_of_alike_noise_can_fail(monkeypatch):
    monkeypatch.setattr(noise, "_inflation", lambda *_: 1.0)
    assert alarms_in_alike_noise() > 20


def test_alike_noise_is_said():
    (doubt,) = examine(alike(200, 0.8, 3)).doubts
    assert "resemble each other" in doubt


def test_two_modes_at_random_are_no_change():
    modes = np.where(random().random(200) < 0.3, 1.05, 1.0)
    assert places(noisy(200, cv=0.003) * modes) == []


def two_modes(n, seed, high=1.3, cv=0.01):
    """Three points in ten in a second mode."""
    draw = random(seed)
    return LEVEL * (1 + draw.normal(0, cv, n)) * np.where(draw.random(n) < 0.3, high, 1.0)


def steps_named_in_two_modes():
    return sum(
        any(abs(place - 70) <= 5 for place in places(with_step(two_modes(100, seed), 70)))
        for seed in range(20)
    )


def test_a_step_in_noise_of_two_modes_is_found():
    assert steps_named_in_two_modes() >= 18


def test_means_alone_miss_a_step_in_noise_of_two_modes(monkeypatch):
    monkeypatch.setattr(segmentation, "best_step_of_modes", lambda *_: scan.NOWHERE)
    assert steps_named_in_two_modes() < 14


def test_noise_of_two_modes_alone_is_no_change():
    series = [two_modes(100, seed, high) for seed in range(15) for high in (1.05, 1.3)]
    assert sum(len(places(values)) for values in series) <= 1


def test_a_slow_drift_through_two_modes_is_no_step():
    series = [two_modes(100, seed) * np.linspace(1, 1.05, 100) for seed in range(15)]
    assert sum(len(places(values)) for values in series) <= 2


def test_steps_in_two_modes_are_found_in_a_long_series_too():
    long = with_step(with_step(two_modes(5_000, 3), 2_000), 4_970, 0.1)
    assert [round(place, -1) for place in places(long)] == [2_000, 4_970]


def test_a_run_whose_repeats_disagree_weighs_less_in_two_modes_too():
    series = with_step(two_modes(100, 3), 70)
    sure, unsure = np.full(100, 0.3), np.full(100, 0.3)
    unsure[70:] = 20.0
    assert any(abs(place - 70) <= 5 for place in places(series, spreads=sure))
    assert places(series, spreads=unsure) == []


def test_few_distinct_values_are_no_obstacle():
    quantised = np.round(noisy(100) / 2) * 2
    assert places(quantised) == []
    assert places(with_step(quantised, 70)) == [70]


def test_a_constant_series_has_no_noise_but_can_step():
    assert examine(np.full(50, 3.0)) == examine(np.full(20, 3.0))
    (point,) = change_points([3.0] * 40 + [3.3] * 5)
    assert point.index == 40
    assert point.effect == pytest.approx(0.1)
    assert point.interval.low == point.interval.high == point.effect


def test_a_change_below_one_per_cent_is_kept_to_ourselves():
    quiet = noisy(100, cv=0.0005)
    assert places(with_step(quiet, 50, 0.005)) == []
    assert places(with_step(quiet, 50, 0.02)) == [50]
    assert places(with_step(quiet, 50, 0.008), kind=Kind.COUNT) == [50]


def test_a_run_whose_repeats_disagree_weighs_less():
    series = with_step(noisy(44), 40, 0.03)
    sure, unsure = np.full(44, 0.3), np.full(44, 0.3)
    unsure[40:] = 6.0
    assert places(series) == places(series, spreads=sure) == [40]
    assert places(series, spreads=unsure) == []


def test_every_difference_of_an_exact_metric_is_a_change():
    found = change_points([0, 0, 2, 0], kind=Kind.EXACT)
    assert [(p.index, p.effect, p.state) for p in found] == [
        (2, 2.0, HistoryState.CONFIRMED),
        (3, -2.0, HistoryState.CONFIRMED),
    ]


def test_proportions_change_by_points_not_by_per_cent():
    right = random().binomial(200, 0.9, 60) / 200
    right[30:] = random(8).binomial(200, 0.75, 30) / 200
    (point,) = change_points(right, kind=Kind.PROPORTION)
    assert point.index == 30
    assert point.effect == pytest.approx(-0.15, abs=0.02)


def test_values_that_are_not_positive_change_by_difference():
    series = random().normal(0, 1, 80)
    series[40:] += 10
    (point,) = change_points(series)
    assert point.index == 40
    assert point.effect == pytest.approx(10, abs=1)


def test_the_unit_of_the_values_does_not_matter():
    series = with_step(noisy(80), 60)
    assert places(series) == places(series * 1e-6) == places(series * 1e9)


def test_mixed_units_are_a_doubt():
    mixed = noisy(40)
    mixed[25:] /= 1000
    (doubt,) = examine(mixed).doubts
    assert "Point 25" in doubt
    assert "factor of about 1000" in doubt


@pytest.mark.parametrize("n", [0, 1, 9])
def test_less_than_ten_points_are_not_enough(n):
    history = examine(with_step(noisy(n), 5, 9.0))
    assert history.points == ()
    assert history.doubts == (f"Not enough data: {n} points, at least 10 needed.",)


def test_a_growing_series_of_noise_alone_hardly_ever_alarms():
    seen = 0
    for seed in range(20):
        series = LEVEL * (1 + 0.02 * random(seed).standard_t(3, 100))
        seen += len({p.index for n in range(10, 101) for p in change_points(series[:n])})
    assert seen <= 3


def test_a_long_series_is_searched_whole():
    long = noisy(20_000)
    assert places(with_step(with_step(long, 5_000), 19_990)) == [5_000, 19_990]


def test_a_staircase_does_not_exhaust_the_stack():
    stairs = noisy(6_000) * np.repeat(np.tile([1.0, 1.2], 50), 60)
    assert places(stairs) == list(range(60, 6_000, 60))


REFUSED = [
    ({"values": [1.0] * 9 + [math.nan]}, "values[9]: expected a finite number, found nan"),
    ({"values": [1.0] * 9 + [-math.inf]}, "values[9]: expected a finite number, found -inf"),
    ({"values": ["fast"] * 10}, "values: expected numbers, found"),
    ({"values": [[1.0] * 10]}, "values: expected one row of numbers, found 2 dimensions"),
    ({"values": [1.7e308, -1.7e308] * 50}, "values[0]: expected a number from -1e+150 to 1e+150"),
    ({"values": np.ones(1_000_001)}, "values: expected at most 1000000 points, found 1000001"),
    ({"spreads": [0.1] * 9}, "spreads: expected 10 numbers, one per value, found 9"),
    ({"spreads": [0.1] * 9 + [-1]}, "spreads[9]: expected 0 or more, found -1"),
    ({"values": [1.0] * 9 + [0.0], "kind": Kind.TIME}, "values[9]: expected more than 0, found 0"),
]


@pytest.mark.parametrize(("given", "said"), REFUSED)
def test_what_makes_no_series_is_refused_in_words(given, said):
    with pytest.raises(HistoryError) as caught:
        examine(**({"values": [1.0] * 10} | given))
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("kind", [None, Kind.EXACT, Kind.COUNT, Kind.PROPORTION])
def test_values_of_any_allowed_size_give_finite_numbers(kind) -> None:
    for low, repeats in itertools.product([-1e150, 0.0, 5e-324, 1.0], [1, 3, 25]):
        values = np.tile(np.repeat([1e150, low], repeats), 4 + 50 // repeats)
        for given in (values, np.sort(values)):
            for point in examine(given, kind=kind).points:
                numbers = [point.effect, point.interval.low, point.interval.high]
                assert np.isfinite(numbers).all(), (low, repeats)
