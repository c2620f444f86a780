"""A story is the same as a scenario file that the loader reads."""

import pytest

from hybridwatch.scenarios.expansion import expand
from hybridwatch.scenarios.load import load_scenario
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.home import home
from hybridwatch_lab.fuzz.room import room_of
from hybridwatch_lab.fuzz.scenario_file import planned, render, waves_of
from hybridwatch_lab.fuzz.story import Act, Story, StoryRequest
from tests.unit.fuzz.theatres import RuledTheatre, search

STORY = Story(
    (
        Act((StoryRequest(0, 81, 2, 80), StoryRequest(0, 160, 8, 80, abort_step=3))),
        Act((StoryRequest(0, 1, 1), StoryRequest(5, 3, 8)), token_budget=16),
    ),
    dummy_batches=3,
)


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    root = home() / "scenarios"
    return load_scenario(root / "fuzz" / "tiny-hybrid.toml", root)


def written(scenario: Scenario, story: Story, folder, *why: str) -> Scenario:
    path = folder / "scenarios" / "found.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(render(scenario, story, why or ("It went wrong.",)), encoding="utf-8")
    return load_scenario(path, path.parent)


def test_the_file_has_the_story_and_the_engine_it_was_told_to(scenario, tmp_path):
    read = written(scenario, STORY, tmp_path)
    assert read.workload.waves == waves_of(STORY)
    assert read.workload.idle_dummy_batches == 3
    assert read.engine == scenario.engine
    assert (read.fix, read.requires) == ("none", scenario.needed_fixes)


def test_the_file_asks_the_story_s_own_requests(scenario, tmp_path):
    read = written(scenario, STORY, tmp_path)
    asked = expand(read.workload.waves, read.workload.seed)
    assert asked == planned(STORY, scenario.workload.seed)
    first, second = asked
    assert first.requests[0].prompt[:80] == first.requests[1].prompt[:80]
    assert first.requests[1].abort_at_step == 3
    assert [request.at_step for request in second.requests] == [0, 5]
    assert second.token_budget == 16


def test_every_story_that_is_told_can_be_written(scenario, tmp_path):
    theatre = RuledTheatre(lambda _story: False)
    made = search(theatre, stories=40)
    made.room = room_of(scenario)
    made.run(5)
    for story in theatre.told:
        assert written(scenario, story, tmp_path).workload.waves == waves_of(story)


def test_what_an_engine_said_cannot_break_out_of_the_text(scenario, tmp_path):
    nasty = 'status 400: """\\n[engine]\x1b[31m'
    assert "status 400" in written(scenario, STORY, tmp_path, nasty).why
