"""Scenarios of a home beside those that are shipped, and links among them."""

import pytest

from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.load import find, survey
from hybridwatch.system.home import shipped

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
    with pytest.raises(ScenarioError) as caught:
        find(own_home / "scenarios", ["smoke"])
    assert str(caught.value) == expected
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
