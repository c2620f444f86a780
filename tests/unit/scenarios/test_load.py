"""What the loader accepts, and how it words each mistake."""

from pathlib import Path

import pytest

from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.fixes import FIXES
from hybridwatch.scenarios.load import digest, find, load_scenario, survey
from hybridwatch.scenarios.scenario import Scenario
from tests.mistakes import read_mistakes
from tests.refusals import refusal
from tests.shipped import SCENARIOS
from tests.unit.scenarios.example import GOOD, write

EXPECT = GOOD[GOOD.index("[expect.exactly]") :]

QUOTED_FIXES = ", ".join(f'"{fix}"' for fix in FIXES)


@pytest.mark.parametrize(
    ("right", "wrong", "line"), read_mistakes("scenario", fixes=QUOTED_FIXES, expect=EXPECT)
)
def test_each_mistake_is_reported_in_one_line(tmp_path, right, wrong, line):
    assert right in GOOD
    path, root = write(tmp_path, GOOD.replace(right, wrong, 1))
    assert refusal(ScenarioError, load_scenario, path, root) == f"scenarios/smoke/x.toml: {line}"


def test_every_wrong_key_is_reported_at_once(tmp_path):
    text = GOOD.replace("seed = 7", "sed = 7").replace("version = 1", "version = 0")
    path, root = write(tmp_path, text)
    assert refusal(ScenarioError, load_scenario, path, root).splitlines() == [
        "scenarios/smoke/x.toml: version: expected an integer >= 1, found 0",
        "scenarios/smoke/x.toml: workload.generation.seed: missing; expected an integer >= 0",
        'scenarios/smoke/x.toml: workload.generation.sed: unknown key; did you mean "seed"?',
    ]


def test_every_disagreement_is_reported_at_once(tmp_path):
    text = GOOD.replace("max_num_seqs = 16", "max_num_seqs = 2").replace("[1, 2, 4]", "[2, 1]")
    path, root = write(tmp_path, text)
    assert len(refusal(ScenarioError, load_scenario, path, root).splitlines()) == 3


def test_a_file_that_is_no_text_is_reported(tmp_path):
    path, root = write(tmp_path, "")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError, match=r"^scenarios/smoke/x.toml: expected UTF-8 text"):
        load_scenario(path, root)


def test_an_odd_file_name_is_reported(tmp_path):
    path, root = write(tmp_path, GOOD, "smoke/My Case.toml")
    with pytest.raises(ScenarioError, match="lower-case words joined by hyphens"):
        load_scenario(path, root)


def test_a_good_file_becomes_a_frozen_scenario(tmp_path):
    path, root = write(tmp_path, GOOD)
    scenario = load_scenario(path, root)
    assert scenario.id == "smoke/x"
    assert scenario.summary == "Rows go stale."
    assert scenario.engine.cudagraph_capture_sizes == (1, 2, 4)
    assert scenario.expect.at_least == {"accuracy.recall": 0.95}
    with pytest.raises(ValueError, match="frozen"):
        scenario.version = 2


def test_a_bad_file_hides_no_other(tmp_path):
    write(tmp_path, GOOD, "smoke/good.toml")
    write(tmp_path, GOOD.replace("version = 1", "version = 0"), "smoke/bad.toml")
    _, root = write(tmp_path, "nothing", "curated/worse.toml")
    found = survey(root)
    assert [scenario.id for scenario in found.scenarios] == ["smoke/good"]
    assert [line.partition(":")[0] for line in found.problems] == [
        "scenarios/curated/worse.toml",
        "scenarios/smoke/bad.toml",
    ]


def test_find_takes_ids_and_groups_once_and_in_order(tmp_path):
    write(tmp_path, GOOD, "smoke/a.toml")
    write(tmp_path, GOOD, "smoke/b.toml")
    _, root = write(tmp_path, GOOD, "curated/c.toml")
    assert [s.id for s in find(root, ["smoke/b", "smoke"])] == ["smoke/b", "smoke/a"]
    assert [s.id for s in find(root, [])] == ["curated/c", "smoke/a", "smoke/b"]


def test_find_opens_only_what_was_named(tmp_path):
    write(tmp_path, "broken", "smoke/broken.toml")
    _, root = write(tmp_path, GOOD, "curated/c.toml")
    assert [s.id for s in find(root, ["curated"])] == ["curated/c"]


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("smoek", '"smoek" names no scenario; did you mean "smoke"?'),
        ("smoke/stal-row", '"smoke/stal-row" names no scenario; did you mean "smoke/stale-rows"?'),
        ("zzz", '"zzz" names no scenario; known: smoke, smoke/stale-rows'),
        ("smo", '"smo" names no scenario; did you mean "smoke"?'),
    ],
)
def test_a_name_of_nothing_lists_near_ones(tmp_path, pattern, line):
    _, root = write(tmp_path, GOOD, "smoke/stale-rows.toml")
    assert refusal(ScenarioError, find, root, [pattern]) == line


def test_no_folder_is_an_error(tmp_path):
    with pytest.raises(ScenarioError, match="expected a folder of scenario files"):
        find(tmp_path / "nowhere", ())


def test_all_shipped_scenarios_load():
    assert find(SCENARIOS, ())


def like(tmp_path: Path, text: str, of: str = GOOD) -> Scenario:
    """Load a scenario that is like the example."""
    write(tmp_path, of, "smoke/a.toml")
    return load_scenario(*write(tmp_path, 'like = "smoke/a"\n' + text, "gpu/b.toml"))


def test_nothing_said_is_the_same_under_another_id(tmp_path):
    scenario = like(tmp_path, "")
    model = load_scenario(tmp_path / "scenarios/smoke/a.toml", tmp_path / "scenarios")
    assert scenario == model.model_copy(update={"id": "gpu/b"})
    assert digest(scenario) == digest(model)


def test_tables_are_laid_over_and_lists_taken_whole(tmp_path):
    scenario = like(
        tmp_path,
        'accelerator = "cuda"\n[engine]\ncudagraph_capture_sizes = [8]\n[workload]\nseed = 99\n',
    )
    model = load_scenario(tmp_path / "scenarios/smoke/a.toml", tmp_path / "scenarios")
    assert scenario.accelerator == "cuda"
    assert scenario.engine.cudagraph_capture_sizes == (8,)
    assert scenario.engine.max_num_seqs == model.engine.max_num_seqs
    assert scenario.workload == model.workload.model_copy(update={"seed": 99})
    assert digest(scenario) != digest(model)


def test_expectations_are_taken_from_one_file_alone(tmp_path):
    scenario = like(tmp_path, '[expect.at_least]\n"accuracy.recall" = 0.5\n')
    assert scenario.expect.at_least == {"accuracy.recall": 0.5}
    assert scenario.expect.exactly == {}


def test_what_changes_in_the_model_changes_here(tmp_path):
    before = digest(like(tmp_path, ""))
    assert digest(like(tmp_path, "", GOOD.replace("seed = 7", "seed = 8"))) != before


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ('"smoke/none"', 'expected the id of a scenario, found "smoke/none"'),
        ('"../smoke/a"', 'expected the id of a scenario, found "../smoke/a"'),
        ("7", "expected the id of a scenario, found 7"),
        ('"gpu/c"', 'expected a scenario that says everything itself, found "gpu/c"'),
    ],
)
def test_who_cannot_be_meant_is_reported(tmp_path, named, said):
    write(tmp_path, GOOD, "smoke/a.toml")
    write(tmp_path, 'like = "smoke/a"\n', "gpu/c.toml")
    path, root = write(tmp_path, f"like = {named}\n", "gpu/b.toml")
    caught = refusal(ScenarioError, load_scenario, path, root)
    assert caught == f"scenarios/gpu/b.toml: like: {said}"


def test_what_is_wrong_in_the_model_is_reported_once_and_of_its_file(tmp_path):
    with pytest.raises(ScenarioError) as caught:
        like(tmp_path, "", GOOD.replace("max_num_seqs", "max_num_sequences"))
    lines = str(caught.value).splitlines()
    assert any("max_num_sequences: unknown key" in line for line in lines)
    assert all(line.startswith("scenarios/smoke/a.toml: ") for line in lines)
    assert survey(tmp_path / "scenarios").problems == tuple(lines)


def test_what_is_wrong_together_is_reported_the_file_that_says_so(tmp_path):
    said = refusal(ScenarioError, like, tmp_path, "[engine]\nmax_num_seqs = 2\n")
    lines = said.splitlines()
    assert lines
    assert all(line.startswith("scenarios/gpu/b.toml: ") for line in lines)
