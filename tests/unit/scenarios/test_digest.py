"""What changes a scenario's digest, and what does not."""

import pytest

from hybridwatch.scenarios.load import digest, load_scenario
from tests.unit.scenarios.example import EXAMPLE, load


@pytest.fixture
def text() -> str:
    return EXAMPLE.read_text(encoding="utf-8")


def test_comments_layout_why_and_place_do_not_count(tmp_path, text):
    other = "# a comment\n" + text.replace("[1, 2, 4]", "[\n  1, 2,\n  4,\n]")
    other = other.replace("Rows go stale.", "Rows stay.")
    other = other.replace('fix = "padded-rows-prefilling"\nmodel = "tiny-hybrid"', "@").replace(
        "@", 'model = "tiny-hybrid"\nfix = "padded-rows-prefilling"'
    )
    assert other != text
    assert digest(load(tmp_path, other, "b")) == digest(load(tmp_path, text, "a"))


@pytest.mark.parametrize(
    ("old", "new"),
    [("performance = 7", "performance = 70"), ("documents = ", "documents = 1"), ("0.95", "0.94")],
)
def test_how_often_and_what_is_expected_do_not_count(tmp_path, text, old, new):
    assert old in text
    assert digest(load(tmp_path, text.replace(old, new, 1))) == digest(load(tmp_path, text))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("seed = 7", "seed = 8"),
        ("version = 1", "version = 2"),
        ('dtype = "float32"', 'dtype = "bfloat16"'),
        ("max_num_seqs = 16", "max_num_seqs = 17"),
    ],
)
def test_what_is_asked_for_counts(tmp_path, text, old, new):
    assert digest(load(tmp_path, text.replace(old, new, 1))) != digest(load(tmp_path, text))


def test_the_digest_of_the_example_is_pinned():
    """A change of the canonical form would silently end every stored series: it must be seen."""
    assert digest(load_scenario(EXAMPLE, EXAMPLE.parent)) == (
        "1c686a0f63eb0bc038b0bb9922734598974e744644a14e5fac9f81f176731799"
    )


FIX = 'fix = "padded-rows-prefilling"\n'
OF_V2 = f'{FIX}fix_v2 = "draft-max-seq-len"\n'


def test_the_fix_of_the_other_model_runner_does_not_count(tmp_path, text):
    scenario = load(tmp_path, text.replace(FIX, OF_V2))
    assert scenario.guarded == ("padded-rows-prefilling", "draft-max-seq-len")
    assert scenario.on("v1") is scenario
    on_v2 = scenario.on("v2")
    assert (on_v2.fix, on_v2.on("v2").fix) == ("draft-max-seq-len",) * 2
    assert on_v2.guarded == scenario.guarded
    same = {digest(one) for one in (load(tmp_path, text), scenario, on_v2, on_v2.on("v2"))}
    assert len(same) == 1
    other = text.replace(FIX, 'fix = "single-token-extend"\nfix_v2 = "padded-rows-prefilling"\n')
    assert digest(load(tmp_path, other).on("v2")) not in same
