"""On the healthy engine a replayed graph is only another way to run the same step.

Every job is served twice by one engine, once without graphs and once replaying them, its arrivals
counted in engine steps; every request must get the same greedy tokens, and no contract may break.
"Healthy" is with the two fixes in that upstream does not have (docs/findings.md).
"""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.engine.laboratory import Laboratory

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("one engine: jobs that once failed, on graphs and shared prefixes"),
    pytest.mark.timeout(900),
]

EXAMPLES = 60
LEAST_REQUESTS = 500  # of each of the two tests
BROKEN = (
    "padded_rows_prefilling",
    "slots_off_block_table",
    "prefills_in_decode_graph",
    "blocks_in_dummy_runs",
)
HEALTHY = {"dummy-run-padding": True, "one-token-prompt": True}
ENGINE = {
    "dtype": "float32",
    "max_model_len": 512,
    "max_num_seqs": 8,
    "compilation_config": {
        "mode": 0,
        "cudagraph_mode": "FULL_DECODE_ONLY",
        "cudagraph_capture_sizes": [2, 4, 8],
    },
}


class Replays(Laboratory):
    """An engine that replays graphs, and how many requests were compared on it."""

    def __init__(self, folder: Path, **arguments: object) -> None:
        super().__init__(folder, {"graph_replay": True}, ENGINE | arguments)
        self.compared = 0

    def serve(self, job, *, eager, fixes=None):
        return self.do({**job, "eager": eager, "fixes": {**HEALTHY, **(fixes or {})}})

    def compare(self, job):
        """Serve a job without and with graphs and hold the answers against each other."""
        right, replayed = self.serve(job, eager=True), self.serve(job, eager=False)
        assert replayed["tokens"] == right["tokens"]
        assert {name: replayed["contract"][name] for name in BROKEN} == dict.fromkeys(BROKEN, 0)
        self.compared += len(right["tokens"])
        return replayed


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Without prefix caching: chunks may be as small as one likes."""
    opened = Replays(tmp_path_factory.mktemp("lab"), enable_prefix_caching=False)
    yield opened
    opened.stop()


@pytest.fixture(scope="module")
def caching_lab(tmp_path_factory):
    """With prefix caching and so few blocks that they go from hand to hand."""
    opened = Replays(
        tmp_path_factory.mktemp("lab"),
        enable_prefix_caching=True,
        mamba_cache_mode="align",
        num_gpu_blocks_override=64,
    )
    yield opened
    opened.stop()


def text(seed: int, tokens: int) -> list[int]:
    """Letters that depend on the seed alone; much shorter to print than the letters."""
    return [97 + (seed * 31 + place * place * 7 + place) % 26 for place in range(tokens)]


@st.composite
def requests(draw, shared):
    """One request; most lengths are near the edges where chunks, blocks and graphs begin."""
    length = draw(st.one_of(st.integers(1, 4), st.integers(15, 18), st.integers(1, 200)))
    prefix = draw(st.sampled_from(shared))
    return {
        "prompt": prefix + text(draw(st.integers(0, 99)), length),
        "max_tokens": draw(st.one_of(st.just(1), st.integers(1, 24))),
        "at": draw(st.integers(0, 12)),
    }


def jobs(budgets, shared):
    """Waves of requests on one engine; some finish early, some are done with their prompt."""
    wave = st.lists(requests(shared), min_size=3, max_size=7)
    return st.fixed_dictionaries(
        {
            "waves": st.lists(wave, min_size=2, max_size=3),
            "chunk_budget": budgets,
            "idle_batches": st.integers(0, 3),
        }
    )


RULES = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def request(prompt, max_tokens, at=0):
    return {"prompt": prompt, "max_tokens": max_tokens, "at": at}


# What once failed, before the fix that is named; each must stay right.
ONE_TOKEN_PROMPTS = {  # one-token-prompt
    "waves": [[request(text(1, 30), 8)], [request(text(2, 1), 9), request(text(3, 1), 9)]],
    "chunk_budget": 2048,
    "idle_batches": 0,
}
DUMMY_RUN_ON_STALE_ROWS = {  # dummy-run-padding: row 1 says "prefilling" for ever
    "waves": [
        [request(text(number, 24), 1) for number in range(8)],
        [request(text(20, 120), 9)],
        [request(text(20, 120), 9)],
    ],
    "chunk_budget": 2048,
    "idle_batches": 3,
}


@pytest.mark.slow
def test_replayed_graphs_say_the_same_as_no_graphs(lab):
    @RULES
    @given(jobs(st.sampled_from([8, 16, 17, 48, 512]), [[]]))
    @example(ONE_TOKEN_PROMPTS)
    def check(job):
        lab.compare(job)

    check()
    assert lab.compared >= LEAST_REQUESTS


@pytest.mark.slow
def test_replayed_graphs_say_the_same_when_prefixes_are_shared(caching_lab):
    shared = [[], text(500, 128), text(501, 140), text(502, 256)]
    cached = []

    @RULES
    @given(jobs(st.sampled_from([256, 300, 512]), shared))
    @example(DUMMY_RUN_ON_STALE_ROWS)
    def check(job):
        cached.extend(caching_lab.compare(job)["cached"])

    check()
    assert caching_lab.compared >= LEAST_REQUESTS
    assert sum(map(bool, cached)) > LEAST_REQUESTS / 10, "hardly a prompt was found in the cache"


@pytest.mark.parametrize(
    ("job", "fix", "contract"),
    [
        (ONE_TOKEN_PROMPTS, "one-token-prompt", "prefills_in_decode_graph"),
        (DUMMY_RUN_ON_STALE_ROWS, "dummy-run-padding", "blocks_in_dummy_runs"),
    ],
)
def test_the_comparison_can_fail(caching_lab, job, fix, contract):
    """The kept jobs break a contract again when their fix is taken out."""
    assert caching_lab.serve(job, eager=False, fixes={fix: False})["contract"][contract] > 0
    assert caching_lab.serve(job, eager=False)["contract"][contract] == 0
