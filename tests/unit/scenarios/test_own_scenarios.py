"""Scenarios of a home beside those that are shipped, and links among them."""

import pytest

from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.load import digest, find, survey
from hybridwatch.system.home import home, shipped
from tests.refusals import refusal
from tests.unit.scenarios.example import GOOD, load

LIKE = 'like = "smoke/dummy-run"\nversion = 1\nmodel = "my-model"\n'


def test_an_own_scenario_may_be_like_one_that_is_shipped(own_home):
    (own_home / "scenarios" / "mine" / "second.toml").write_text(LIKE)
    mine, model = find(own_home / "scenarios", ["mine/second", "smoke/dummy-run"])
    assert (mine.model, mine.engine) == ("my-model", model.engine)


def test_a_group_of_the_home_and_one_that_is_shipped_may_have_one_name(own_home):
    (own_home / "scenarios" / "smoke").mkdir()
    (own_home / "scenarios" / "smoke" / "mine.toml").write_text(LIKE)
    assert {"smoke/mine", "smoke/dummy-run"} < {
        one.id for one in find(own_home / "scenarios", ["smoke"])
    }


def test_an_id_that_is_taken_is_refused_with_both_files(own_home):
    taken = own_home / "scenarios" / "smoke" / "dummy-run.toml"
    taken.parent.mkdir()
    taken.write_text(LIKE)
    theirs = shipped() / "scenarios" / "smoke" / "dummy-run.toml"
    expected = f"{taken}: expected an id that is not taken; {theirs} has it: rename"
    assert refusal(ScenarioError, find, own_home / "scenarios", ["smoke"]) == expected
    found = survey(own_home / "scenarios")
    assert found.problems == (expected,)
    assert "smoke/padded-graph-rows" in {one.id for one in found.scenarios}


def test_links_to_files_and_folders_are_followed(own_home, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "one.toml").write_text(LIKE)
    (own_home / "scenarios" / "linked").symlink_to(elsewhere)
    (own_home / "scenarios" / "mine" / "two.toml").symlink_to(elsewhere / "one.toml")
    found = find(own_home / "scenarios", ["linked", "mine/two"])
    assert [one.id for one in found] == ["linked/one", "mine/two"]


def test_a_link_to_a_folder_that_it_lies_in_is_refused(own_home):
    loop = own_home / "scenarios" / "mine" / "again"
    loop.symlink_to(own_home / "scenarios")
    with pytest.raises(ScenarioError, match=rf"^{loop}: expected a link to another place, found"):
        find(own_home / "scenarios", ["mine"])


def test_a_link_that_leads_nowhere_is_refused(own_home):
    (own_home / "scenarios" / "gone").symlink_to("/no/such/folder")
    with pytest.raises(ScenarioError, match=r"gone: expected a link to what is there: /no/such"):
        survey(own_home / "scenarios")


ENOUGH = 10
"""Trials a side of a timed phase. Five agree by chance once in 126 times, which the adjustment for
some ten tests of a report takes away, however large the change."""


def test_no_timed_phase_has_too_few_trials_to_be_decided() -> None:
    shipped = find(home() / "scenarios", [])
    few = {
        one.id: (one.trials.performance, one.trials.host_sync)
        for one in shipped
        if min(one.trials.performance, one.trials.host_sync) < ENOUGH
    }
    assert shipped
    assert few == {}


ACCURACY = GOOD[GOOD.index("[accuracy]") : GOOD.index("[trials]")]
AT_LEAST = GOOD[GOOD.index("[expect.at_least]") :]
DUMMY = GOOD.replace('dtype = "float32"', 'dtype = "bfloat16"\nload_format = "dummy"', 1)
MADE_UP = DUMMY.replace(ACCURACY, "").replace(AT_LEAST, "")
SPEED_ALONE = MADE_UP[: MADE_UP.index("[expect.exactly]")] + "[expect]\n"


def test_made_up_weights_have_contracts_and_no_answers(tmp_path):
    scenario = load(tmp_path, MADE_UP)
    assert scenario.accuracy is None
    assert not scenario.is_of_speed_alone
    assert digest(scenario) != digest(load(tmp_path, GOOD))


def test_without_contracts_either_nothing_needs_to_be_expected(tmp_path):
    text = SPEED_ALONE.replace("contract = 3", "contract = 0")
    assert text != SPEED_ALONE
    assert load(tmp_path, text).is_of_speed_alone


def test_a_model_of_the_hub_may_be_pinned(tmp_path):
    text = GOOD.replace('model = "tiny-hybrid"', 'model = "owner/name"\nrevision = "abc123"')
    scenario = load(tmp_path, text)
    assert (scenario.on_hub, scenario.revision) == (True, "abc123")
    assert digest(scenario) != digest(load(tmp_path, text.replace("abc123", "abc124")))


@pytest.mark.parametrize(("accelerator", "cpu"), [("", True), ('accelerator = "cuda"\n', False)])
def test_a_scenario_may_need_a_gpu(tmp_path, accelerator, cpu):
    scenario = load(tmp_path, accelerator + GOOD)
    assert scenario.fits("cpu") is cpu
    assert scenario.fits("cuda")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            DUMMY,
            "accuracy: expected none with engine.load_format dummy: its answers say nothing",
        ),
        (
            MADE_UP.replace('"tiny-hybrid"', '"owner/name"'),
            "engine.load_format: expected none with a model of the hub (owner/name)",
        ),
        (
            'revision = "abc"\n' + GOOD,
            'revision: expected none with a model of our own ("tiny-hybrid")',
        ),
        (
            'revision = "a b"\n' + GOOD,
            'revision: expected a commit, tag or branch, found "a b"',
        ),
        (
            'accelerator = "tpu"\n' + GOOD,
            'accelerator: expected one of "cpu", "cuda", found "tpu"',
        ),
        (
            GOOD.replace('"FULL_DECODE_ONLY"', '"FULL_AND_PIECEWISE"'),
            "engine.compilation_mode: missing; expected 3 with cudagraph_mode FULL_AND_PIECEWISE",
        ),
        (
            MADE_UP.replace('"dummy"', '"dumy"'),
            'engine.load_format: expected "dummy", found "dumy"',
        ),
        (
            SPEED_ALONE,
            "expect: expected at least one metric under exactly or at_least, found none",
        ),
    ],
)
def test_each_mistake_is_reported(tmp_path, text, said):
    assert refusal(ScenarioError, load, tmp_path, text).partition("x.toml: ")[2] == said
