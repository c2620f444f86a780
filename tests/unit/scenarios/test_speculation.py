"""The table that makes an engine speculate refuses what vLLM would make no sense of."""

import pytest

from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.load import load_scenario
from tests.unit.scenarios.test_load import GOOD

HEAD = 'method = "eagle"\nmodel = "a-head"\ndrafts = 3\n'
NGRAM = 'method = "ngram"\ndrafts = 3\n'
OWN = 'method = "mtp"\ndrafts = 3\n'

CONTRADICTIONS = [
    (NGRAM + 'model = "a-head"\n', 'model: expected none with method "ngram", found "a-head"'),
    (
        NGRAM + "lookup_min = 5\nlookup_max = 2\n",
        "lookup_min: expected at most lookup_max (2), found 5",
    ),
    (OWN + 'model = "a-head"\n', 'model: expected none with method "mtp", found "a-head"'),
    (OWN + "lookup_min = 2\n", 'lookup_min: expected only with method "ngram", found 2'),
    ('method = "eagle"\ndrafts = 3\n', 'model: missing; method "eagle" needs it'),
    ('method = "draft_model"\ndrafts = 3\n', 'model: missing; method "draft_model" needs it'),
    (HEAD + "lookup_min = 2\n", 'lookup_min: expected only with method "ngram", found 2'),
    (HEAD + "lookup_max = 2\n", 'lookup_max: expected only with method "ngram", found 2'),
    (
        HEAD.replace("drafts = 3", "drafts = 0"),
        "drafts: expected an integer from 1 to 16, found 0",
    ),
    (NGRAM.replace("ngram", "oracle"), "method: expected one of"),
]


@pytest.fixture
def load(tmp_path):
    """Load a scenario whose engine speculates as the text says."""

    def of(text):
        path = tmp_path / "example.toml"
        path.write_text(GOOD.replace("[workload]", f"[engine.speculation]\n{text}\n[workload]", 1))
        return load_scenario(path, tmp_path)

    return of


@pytest.mark.parametrize("text", [NGRAM, NGRAM + "lookup_min = 2\nlookup_max = 2\n", OWN, HEAD])
def test_speculation_that_makes_sense_is_taken(load, text):
    assert load(text).engine.speculation.drafts == 3


@pytest.mark.parametrize(("text", "said"), CONTRADICTIONS)
def test_contradictions_are_named(load, text, said):
    with pytest.raises(ScenarioError) as caught:
        load(text)
    assert f"engine.speculation.{said}" in str(caught.value)
