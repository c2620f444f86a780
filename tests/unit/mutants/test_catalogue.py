"""The catalogue of mutants: whole, the same in harness and plugin, and each with its code."""

import dataclasses
import json

import pytest
from hybridwatch_engine.mutants.headers import header_from, mutant_headers
from hybridwatch_engine.mutants.mutant import patches_of
from hybridwatch_engine.mutants.tally import Tally

from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.own_faults import MECHANISMS, load_mutants
from hybridwatch_lab.in_engine import MUTANTS, SETTINGS
from hybridwatch_lab.mutants.table import catalogue, halves

THE_EIGHT = (
    "unzeroed-state",
    "condensed-crosswise",
    "continued-window-late",
    "hit-block-before",
    "decode-dt-bias",
    "decode-state-unwritten",
    "resumed-without-state",
    "seed-ignored",
)


@pytest.fixture(autouse=True)
def told(monkeypatch):
    """This process is told of the mutants as an engine is."""
    monkeypatch.setenv("HYBRIDWATCH_ENGINE", json.dumps(SETTINGS))
    mutant_headers.cache_clear()
    yield
    mutant_headers.cache_clear()


def table(**changes: object) -> str:
    keys = {
        "half": '"first"',
        "mechanism": '"dtype"',
        "target": '["a:b"]',
        "by": '"cost.twice"',
        "resembles": '"made up"',
        "what": '"Nothing."',
    }
    return "[mutant.one]\n" + "\n".join(f"{k} = {v}" for k, v in {**keys, **changes}.items())


def test_there_are_forty_mutants_and_the_faults_of_the_start_come_first():
    assert len(catalogue()) >= 40
    assert tuple(catalogue())[: len(THE_EIGHT)] == THE_EIGHT


def test_every_mechanism_has_a_mutant():
    assert {one.mechanism for one in catalogue().values()} == set(MECHANISMS)


def test_no_half_is_twice_the_other():
    first, second = (len(half) for half in halves(catalogue()).values())
    assert first + second == len(catalogue())
    assert max(first, second) <= 2 * min(first, second)


def test_harness_and_plugin_read_the_same_mutants():
    theirs, ours = mutant_headers(), catalogue()
    assert list(theirs) == list(ours)
    for name, header in theirs.items():
        assert header.phase == ours[name].phase
        assert header.target == ours[name].target


def test_an_engine_that_is_told_of_none_has_none(monkeypatch):
    monkeypatch.delenv("HYBRIDWATCH_ENGINE")
    mutant_headers.cache_clear()
    assert mutant_headers() == {}


def test_every_mutant_has_code_that_takes_its_parameters():
    headers = mutant_headers()
    refused = {}
    for name in catalogue():
        try:
            made = patches_of(dataclasses.replace(headers[name], target=()), Tally())
        except ValueError as error:
            refused[name] = str(error)
        else:
            assert not made.in_place, name
    assert refused == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"half": '"third"'}, "half"),
        ({"mechanism": '"magic"'}, "mechanism: expected one of slot lifetime"),
        ({"wat": "1"}, "wat"),
    ],
)
def test_a_wrong_key_is_refused_by_name(tmp_path, changes, message):
    (tmp_path / "first.toml").write_text(table(**changes), encoding="utf-8")
    with pytest.raises(ScenarioError, match=rf"first.toml: .*{message}"):
        load_mutants(tmp_path / "first.toml")


def test_what_changes_a_mutant_changes_its_digest():
    one = catalogue()["decode-dt-bias"]
    assert one.model_copy(update={"parameters": {"plus": 0.25}}).digest != one.digest
    assert one.model_copy(update={"what": "Other words."}).digest == one.digest


def keys(**changes: object) -> dict[str, object]:
    header = mutant_headers()["unzeroed-state"]
    names = ("half", "mechanism", "target", "by", "resembles", "what", "parameters")
    return {**{name: getattr(header, name) for name in names}, **changes}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"by": "nowhere.at_all"}, r"by: expected module.function of .*, found nowhere.at_all"),
        ({"by": "cost.nothing"}, r"by: expected module.function of .*, found cost.nothing"),
        ({"parameters": {"wat": 1}}, r"parameters: expected those of state_flags.begun"),
    ],
)
def test_code_that_is_not_there_is_refused_by_file_and_key(changes, message):
    header = header_from("one", keys(**changes), "first.toml: mutant.one", MUTANTS)
    with pytest.raises(ValueError, match=r"first.toml: mutant.one." + message):
        patches_of(header, Tally())


def test_a_header_without_a_key_is_refused():
    lacking = {key: value for key, value in keys().items() if key != "by"}
    with pytest.raises(ValueError, match=r"mutant.one.by: expected a value, found none"):
        header_from("one", lacking, "first.toml: mutant.one", MUTANTS)
