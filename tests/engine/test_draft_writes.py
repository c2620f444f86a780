"""A draft model beside a hybrid target: where it writes, and what becomes of the text."""

import pytest

from hybridwatch.system.home import home
from tests.engine.laboratory import Laboratory

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("one engine, the only one with a draft model"),
    pytest.mark.timeout(600),
]

REQUESTS = 24
BLOCK = 128
ENGINE = {
    "dtype": "float32",
    "enforce_eager": True,
    "max_model_len": 512,
    "max_num_seqs": 8,
    "enable_prefix_caching": True,
    "mamba_cache_mode": "align",
    "speculative_config": {
        "method": "draft_model",
        "model": str(home() / "models" / "tiny-llama-draft"),
        "num_speculative_tokens": 3,
    },
}


def prompts() -> list[list[int]]:
    """Texts of 3 to 164 letters; every third has a beginning of one block that others have too."""
    common = [97 + place % 5 for place in range(BLOCK)]
    return [
        (common if number % 3 == 0 else [])
        + [97 + (number * 31 + place * place * 7 + place) % 26 for place in range(3 + number * 7)]
        for number in range(REQUESTS)
    ]


@pytest.fixture(scope="module")
def serve(tmp_path_factory):
    """Give the requests to the engine, with its drafts or without."""
    lab = Laboratory(tmp_path_factory.mktemp("lab"), {"graph_replay": False}, ENGINE)
    wave = [{"prompt": prompt, "max_tokens": 24, "at": 0} for prompt in prompts()]

    def do(*, fix, speculate=True):
        fixes = {"draft-model-cache-group": fix}
        return lab.do({"waves": [wave], "fixes": fixes, "speculate": speculate})

    yield do
    lab.stop()


@pytest.fixture(scope="module")
def without_drafts(serve):
    """What the target says alone. The draft model runs, so it must keep to its own blocks."""
    return serve(fix=True, speculate=False)["tokens"]


def test_with_the_fix_speculation_changes_no_token(serve, without_drafts):
    answer = serve(fix=True)
    assert answer["tokens"] == without_drafts
    assert BLOCK in answer["cached"]
    counts = answer["contract"]
    assert counts["draft_passes"] > 3
    assert counts["draft_blocks"] > counts["draft_passes"]
    assert counts["mamba_blocks_overwritten"] == 0


def test_the_released_engine_overwrites_state_and_says_other_things(serve, without_drafts):
    answer = serve(fix=False)
    wrong = sum(a != b for a, b in zip(answer["tokens"], without_drafts, strict=True))
    assert wrong > REQUESTS / 2
    counts = answer["contract"]
    assert counts["mamba_blocks_overwritten"] == counts["draft_blocks"] > counts["draft_passes"]


def test_damage_does_not_stay(serve, without_drafts):
    serve(fix=False)
    answer = serve(fix=True)
    assert answer["tokens"] == without_drafts
    assert answer["contract"]["mamba_blocks_overwritten"] == 0
