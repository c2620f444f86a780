"""A machine that changed is told from builds that did, by the baseline that did not."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hybridwatch.analysis.change_point import History
from hybridwatch.database.queries import open_index
from hybridwatch.history.checkout import Checkout
from hybridwatch.history.lines import compute_medians
from hybridwatch.history.machine_changes import MachineChange, find_moves, machine_changes
from hybridwatch.integrations.notify.gather import TopicPlace, gather_topics
from hybridwatch.integrations.notify.news import News, TopicStatus, find_news
from hybridwatch.metrics import find_metric
from hybridwatch.pages.address import address
from hybridwatch.pages.document import Chart, Notice
from hybridwatch.pages.screens import ScreenSource, open_view
from hybridwatch.records.identity import ScenarioRef, Testbed
from hybridwatch.records.store import write_run
from tests.builders import STARTED, TESTBED, a_comparison, noisy
from tests.dashboard.parity import words_of
from tests.machine_worlds import AT, IN_TIME, NOISE, is_told, told_nights, world
from tests.unit.pages.suite_stores import all_blocks

SCENARIOS = ("smoke/one", "smoke/two", "smoke/three")
NIGHTS, CHANGED = 18, 14
UPGRADED = replace(TESTBED, kernel="6.9.0", driver="570.86.15")
NOW = STARTED + timedelta(days=NIGHTS)
Slower = Callable[[int, str], tuple[float, float]]
"""By how much a scenario's baseline and contender are slower on a night."""


def write_nights(
    results: Path, slower: Slower, testbed: Callable[[int], Testbed], nights: int = NIGHTS
) -> None:
    evening = STARTED.replace(hour=23, minute=30)  # the night goes on behind midnight
    for night in range(nights):
        for nth, scenario in enumerate(SCENARIOS):
            seeds = (10_000 + 10 * night + nth, 20_000 + 10 * night + nth)
            sides = [
                {
                    "ttft": noisy(0.1 * factor, spread=0.01, seed=seed),
                    "output_throughput": noisy(500 / factor, spread=0.01, seed=seed + 5),
                }
                for factor, seed in zip(slower(night, scenario), seeds, strict=True)
            ]
            run = a_comparison(
                *sides,
                id=f"{10 * night + nth:08x}",
                started_at=evening + timedelta(days=night, minutes=40 * nth),
                scenario=ScenarioRef(scenario, 1, f"{nth}" * 64, ""),
                testbed=testbed(night),
            )
            write_run(results, run)


def upgraded(night: int) -> Testbed:
    return UPGRADED if night >= CHANGED else TESTBED


def same(night: int) -> Testbed:
    return TESTBED


def both(night: int, scenario: str) -> tuple[float, float]:
    return (1.1, 1.1) if night >= CHANGED else (1.0, 1.0)


def contender(night: int, scenario: str) -> tuple[float, float]:
    return (1.0, 1.1) if night >= CHANGED else (1.0, 1.0)


def one_scenario(night: int, scenario: str) -> tuple[float, float]:
    return both(night, scenario) if scenario == SCENARIOS[0] else (1.0, 1.0)


def nothing(night: int, scenario: str) -> tuple[float, float]:
    return 1.0, 1.0


def source_of(results: Path) -> ScreenSource:
    return ScreenSource(results, open_index(results), NOW)


def said(source: ScreenSource, screen: str, **parameters: Any) -> str:
    return "\n".join(words_of(open_view(source, address(screen, **parameters))))


def charts(source: ScreenSource) -> Iterator[Chart]:
    blocks = all_blocks(open_view(source, address("scenario", scenario=SCENARIOS[1])))
    return (block for block in blocks if isinstance(block, Chart))


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("changed")
    write_nights(results, both, upgraded)
    return results


def test_both_builds_slower_on_a_new_kernel_are_the_machine(changed) -> None:
    (found,) = machine_changes(open_index(changed))
    assert found.testbed == TESTBED.id
    assert (found.moved, found.of) == (3, 3)
    assert found.slower == pytest.approx(np.log(1.1), abs=0.01)
    day = STARTED + timedelta(days=CHANGED)
    assert found.at.date() == day.date()
    assert found.text.startswith(
        f"the machine changed on {day:%Y-%m-%d}: kernel {TESTBED.kernel} to 6.9.0"
    )
    assert found.text.endswith(" % slower in 3 of 3 scenarios")


@pytest.mark.parametrize("slower", [contender, one_scenario, nothing])
def test_where_the_baseline_did_not_move_in_most_scenarios_the_machine_did_not(
    tmp_path, slower
) -> None:
    write_nights(tmp_path, slower, same)
    assert machine_changes(open_index(tmp_path)) == ()


def test_facts_that_changed_while_nothing_moved_are_a_small_mark_and_no_news(tmp_path) -> None:
    write_nights(tmp_path, nothing, upgraded)
    source = source_of(tmp_path)
    (found,) = machine_changes(source.index)
    assert not found.slower
    assert "6.9.0" in found.text
    assert "6.9.0" not in said(source, "overview")
    for chart in charts(source):
        (mark,) = chart.figure.layout.annotations
        assert (mark.text, mark.hovertext) == ("\N{WHITE DIAMOND}", found.text)
        assert not chart.figure.layout.shapes
    assert not [topic for topic in topics(tmp_path) if topic.content().area == "machine"]


def test_without_a_new_fact_it_takes_three_nights(tmp_path) -> None:
    write_nights(tmp_path / "two", both, same, nights=CHANGED + 2)
    assert machine_changes(open_index(tmp_path / "two")) == ()
    write_nights(tmp_path / "three", both, same, nights=CHANGED + 3)
    (found,) = machine_changes(open_index(tmp_path / "three"))
    assert "nothing that is recorded of it" in found.text


def test_with_a_new_fact_it_takes_one_night(tmp_path) -> None:
    write_nights(tmp_path, both, upgraded, nights=CHANGED + 1)
    (found,) = machine_changes(open_index(tmp_path))
    assert found.slower


@pytest.mark.parametrize("screen", ["overview", "alerts"])
def test_who_looks_for_what_is_bad_reads_it(changed, screen) -> None:
    source = source_of(changed)
    (found,) = machine_changes(source.index)
    (notice,) = (
        block
        for block in all_blocks(open_view(source, address(screen)))
        if isinstance(block, Notice) and "machine" in block.title
    )
    assert notice.lines[0] == f"{TESTBED.id}: {found.text}."


def test_no_commit_is_blamed_for_what_the_machine_did(changed) -> None:
    source = source_of(changed)
    (found,) = machine_changes(source.index)
    page = said(source, "scenario", scenario=SCENARIOS[1])
    assert found.text in page
    assert "release and fixes are the same" not in page
    assert "everything that differs" not in page
    for chart in charts(source):
        assert chart.description.endswith(f"{found.text[4:]}.")
        assert [mark.hovertext for mark in chart.figure.layout.annotations] == [found.text]


def test_a_change_of_the_contender_alone_keeps_its_suspects(tmp_path) -> None:
    write_nights(tmp_path, contender, upgraded)
    assert "everything that differs" in said(source_of(tmp_path), "scenario", scenario=SCENARIOS[1])


def topics(results: Path, now=NOW):
    return gather_topics(TopicPlace(results, open_index(results), Checkout()), now)


def test_channels_hear_of_it_once_and_of_no_recovery(changed) -> None:
    (topic,) = (one for one in topics(changed) if one.content().area == "machine")
    assert find_news(topic, None) is News.OPENED
    assert "kernel" in topic.content().detail
    later = topics(changed, NOW + timedelta(days=30))
    (quiet,) = (one for one in later if one.key == topic.key)
    assert quiet.standing is TopicStatus.QUIET
    assert find_news(quiet, None) is None


@pytest.mark.parametrize("name", ["quiet", "usual"])
def test_a_change_of_five_per_cent_is_reported_in_time_and_no_noise_is(name) -> None:
    seeds = range(20)
    assert sum(is_told(seed, 0.05, NOISE[name]) for seed in seeds) >= 18
    assert sum(bool(told_nights(seed, 0.0, NOISE[name])) for seed in seeds) <= 1


def test_a_rule_without_the_contender_would_see_what_it_must_not() -> None:
    baseline, other = world(3, 0.05)
    still = other.copy()
    still[..., AT:] -= np.log1p(0.05)
    assert [night for night, *_ in find_moves(baseline, other, ())] == [AT]
    assert not list(find_moves(baseline, still, ()))
    assert not list(find_moves(baseline[..., : AT + IN_TIME - 1], other, ()))


@pytest.mark.slow
@pytest.mark.parametrize("name", NOISE)
def test_false_findings_are_rare_in_every_noise(name) -> None:
    worlds = 60
    assert sum(bool(told_nights(seed, 0.0, NOISE[name])) for seed in range(worlds)) <= worlds / 20


def _two_steps(machines: Sequence[MachineChange]) -> History:
    """A nightly that got slower ten nights before its machine did, as it is drawn."""
    noise = np.random.default_rng(1).normal(0, 0.02, 40)
    slower = 1.08 ** (np.arange(40) >= 14) * 1.1 ** (np.arange(40) >= 24)
    days = pd.date_range(STARTED, periods=40)
    levels = pd.DataFrame({"started_at": days, "value": 0.1 * slower * np.exp(noise)})
    levels["run"] = levels.index
    levels = levels.assign(line="nightly", build="nightly", side=1, release="0.28.0", digest="d")
    ttft = find_metric("ttft")
    (line,) = compute_medians(levels, ttft, "nightly", 50, over_releases=False, machines=machines)
    return line.history


def test_a_step_and_a_later_one_of_the_machine_are_no_drift() -> None:
    before, at = (STARTED + timedelta(days=night) for night in (23, 24))
    history = _two_steps([MachineChange(TESTBED.id, before, at, (), math.log(1.1), 3, 3)])
    (point,) = history.points
    assert point.first <= 14 <= point.last
    assert point.interval.low < 0.08 < point.interval.high
    assert history.drifts == ()


def test_without_the_machine_they_would_be_one() -> None:
    assert len(_two_steps(()).drifts) == 1
