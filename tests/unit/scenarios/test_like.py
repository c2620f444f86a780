"""A scenario that is like another: what it takes over, what it says, and who may be meant."""

from pathlib import Path

import pytest

from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.load import digest, load_scenario, survey
from hybridwatch.scenarios.scenario import Scenario
from tests.unit.scenarios.test_load import GOOD, write


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
def test_who_cannot_be_meant_is_told(tmp_path, named, said):
    write(tmp_path, GOOD, "smoke/a.toml")
    write(tmp_path, 'like = "smoke/a"\n', "gpu/c.toml")
    path, root = write(tmp_path, f"like = {named}\n", "gpu/b.toml")
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path, root)
    assert str(caught.value) == f"scenarios/gpu/b.toml: like: {said}"


def test_what_is_wrong_in_the_model_is_told_once_and_of_its_file(tmp_path):
    with pytest.raises(ScenarioError) as caught:
        like(tmp_path, "", GOOD.replace("max_num_seqs", "max_num_sequences"))
    lines = str(caught.value).splitlines()
    assert any("max_num_sequences: unknown key" in line for line in lines)
    assert all(line.startswith("scenarios/smoke/a.toml: ") for line in lines)
    assert survey(tmp_path / "scenarios").problems == tuple(lines)


def test_what_is_wrong_together_is_told_of_the_file_that_says_so(tmp_path):
    with pytest.raises(ScenarioError) as caught:
        like(tmp_path, "[engine]\nmax_num_seqs = 2\n")
    lines = str(caught.value).splitlines()
    assert lines
    assert all(line.startswith("scenarios/gpu/b.toml: ") for line in lines)
