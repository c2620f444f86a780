"""Model runner V2 on a CPU: it says what V1 says, speculation and graphs lose nothing, and lengths
and replays are held.

One engine with Eagle drafts on V2, its FULL graphs replayed, and for comparison one on V1.
"""

import pytest

from hybridwatch.system.home import home
from hybridwatch_lab.in_engine import SETTINGS
from tests.engine.laboratory import Laboratory

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("one engine on model runner V2, interpreted"),
    pytest.mark.timeout(600),
]

ROOM, DRAFTS = 512, 3
ARGUMENTS = {
    "dtype": "float32",
    # A decode has a token and its three drafts.
    "compilation_config": {
        "mode": 0,
        "cudagraph_mode": "FULL_DECODE_ONLY",
        "cudagraph_capture_sizes": [8, 16],
    },
    "enable_prefix_caching": False,
    "max_model_len": ROOM,
    "max_num_seqs": 4,
}
EAGLE = {
    "method": "eagle",
    "model": str(home() / "models" / "tiny-hybrid-eagle"),
    "num_speculative_tokens": DRAFTS,
}
WAVE = [
    {"prompt": [97 + place * 7 % 26 for place in range(length)], "max_tokens": 10, "at": at}
    for length, at in ((5, 0), (23, 0), (70, 2), (1, 3))
]
# Of a repeating text, which the head has learnt to go on with.
REPEATED = [
    {"prompt": [97 + place % period for place in range(40)], "max_tokens": 40, "at": 0}
    for period in (2, 3, 5)
]
# A prompt as long as a decode: up to 0.27.1 its shape alone chose the graph.
SHAPED = [{"prompt": [98, 105, 112, 119], "max_tokens": 10, "at": 0}]
BY_SHAPE = "decode-graph-by-shape"
PADDED_ROWS, DUMMY_ROWS = "stale-padded-rows", "stale-block-table-dummy-rows"
ONE = [{"prompt": [97] * 8, "max_tokens": 4, "at": 0}]
# Alone and without drafts: its steps have 8, 9, 10 and 11 tokens.
LENGTHS = [8, 9, 10, 11]


def open_lab(folder, runner, **arguments):
    wishes = {"model_runner": runner, "graph_replay": True, **SETTINGS}
    return Laboratory(folder, wishes, ARGUMENTS | arguments)


@pytest.fixture(scope="module")
def serve(tmp_path_factory):
    """Give a wave to the engine on V2."""
    lab = open_lab(tmp_path_factory.mktemp("v2"), "v2", speculative_config=EAGLE)
    yield lambda wave, **job: ask(lab, wave, **job)
    lab.stop()


def ask(lab, wave, *, reverted=(), without=None, **job):
    fixes = {f"draft-max-seq-len-{half}": half not in reverted for half in ("target", "draft")}
    fixes |= {fix: fix != without for fix in (BY_SHAPE, PADDED_ROWS, DUMMY_ROWS)}
    return lab.do({"chunk_budget": 64, "waves": [wave], "fixes": fixes, **job})


@pytest.fixture(scope="module")
def healthy(serve):
    return serve(WAVE, speculate=True)


def test_drafts_change_no_token(serve, healthy):
    assert serve(WAVE, speculate=False)["tokens"] == healthy["tokens"]


# An engine more; what is right is in oracles/smoke/draft-max-seq-len.json, without V1.
@pytest.mark.slow
def test_runner_v2_says_what_v1_says(healthy, tmp_path):
    lab = open_lab(tmp_path, "v1")
    try:
        on_v1 = ask(lab, WAVE)
    finally:
        lab.stop()
    assert "replays" in on_v1["contract"]  # the probe of V1: this is not V2 once more
    assert healthy["tokens"] == on_v1["tokens"]


def test_a_replayed_graph_is_another_way_to_run_the_same_step(serve, healthy):
    assert serve(WAVE, speculate=True, eager=True)["tokens"] == healthy["tokens"]
    counts = healthy["contract"]
    assert counts["padded_replays"] > 0
    assert counts["layers_replayed"]["mamba2"] == 3 * counts["graphs_replayed"]
    assert counts["states_compared"] > 0
    assert {name: count for name, count in counts.items() if "_off" in name and count} == {}


def test_drafts_of_replayed_graphs_are_accepted_as_often(serve):
    drafted = serve(REPEATED, speculate=True)
    assert drafted["steps"] == serve(REPEATED, speculate=True, eager=True)["steps"]
    # The planted defect: the graphs of drafts read a buffer that the host no longer writes.
    stale = serve(REPEATED, speculate=True, mutant="v2-draft-lengths-kept")
    assert stale["changed"] > 0
    assert stale["tokens"] == drafted["tokens"]
    assert stale["steps"] > drafted["steps"]
    wrong = {
        side: told["contract"]["replay_off_seq_lens"]
        for side, told in {"healthy": drafted, "stale": stale}.items()
    }
    assert wrong["healthy"] == 0 < wrong["stale"]


def test_a_prompt_in_the_shape_of_a_decode_is_seen_and_mended(serve):
    right = serve(SHAPED, speculate=True, eager=True)["tokens"]
    told = serve(SHAPED, speculate=True, without=BY_SHAPE)
    assert told["tokens"] != right
    assert told["contract"]["replay_off_initial_states"] == 1
    mended = serve(SHAPED, speculate=True)
    assert mended["tokens"] == right
    assert mended["contract"]["replay_off_initial_states"] == 0


def test_padded_rows_that_keep_blocks_are_seen(serve):
    # What such rows read is what was there before, so how many drafts are accepted is left open.
    counts = serve(WAVE, speculate=True, without=PADDED_ROWS)["contract"]
    assert counts["padded_replays"] > 0
    assert counts["slots_off_block_table"] > 0


def test_healthy_metadata_speak_of_nothing_that_is_not_there(healthy):
    counts = healthy["contract"]
    assert counts["max_seq_len_excess_target"] == counts["max_seq_len_excess_draft"] == 0
    # The first draft of a step takes the target's metadata.
    assert counts["draft_metadata_builds"] == (DRAFTS - 1) * counts["target_metadata_builds"] > 0


@pytest.mark.parametrize("reverted", [("target",), ("draft",), ("target", "draft")])
def test_each_half_is_counted_to_the_token(serve, reverted):
    told = serve(ONE, speculate=False, reverted=reverted)
    target = sum(ROOM - length for length in LENGTHS)
    draft = sum(ROOM - length - DRAFTS for length in LENGTHS) * (DRAFTS - 1)
    expected = {
        "target_metadata_builds": len(LENGTHS),
        "max_seq_len_excess_target": target if "target" in reverted else 0,
        "draft_metadata_builds": len(LENGTHS) * (DRAFTS - 1),
        "max_seq_len_excess_draft": draft if "draft" in reverted else 0,
    }
    assert {name: told["contract"][name] for name in expected} == expected


def test_a_wrong_length_changes_no_text_on_a_cpu(serve, healthy):
    told = serve(WAVE, speculate=True, reverted=("target", "draft"))
    assert told["tokens"] == healthy["tokens"]


def test_dummy_batches_of_an_idle_engine_replay_over_the_null_block(serve, healthy):
    idle = serve(WAVE, speculate=True, idle_batches=2)
    assert idle["contract"]["dummy_replays"] == healthy["contract"]["dummy_replays"] + 2
    assert idle["contract"]["blocks_in_dummy_runs"] == 0
    assert idle["contract"]["max_seq_len_excess_target"] == 0
    assert idle["tokens"] == healthy["tokens"]
    stale = serve(WAVE, speculate=True, idle_batches=2, without=DUMMY_ROWS)
    assert stale["contract"]["blocks_in_dummy_runs"] > 0


def test_host_reads_are_those_of_the_engine_not_of_the_interpreter(serve):
    told = serve(ONE, speculate=False, idle_batches=2, probe="host-sync")["host-sync"]
    assert len(told["reads_per_step"]) == len(LENGTHS)
    assert all(told["reads_per_step"])
    assert not [site for site in told["sites"] if site.startswith("triton/")]
    assert [site for site in told["sites"] if "MambaHybridModelState.prepare_attn" in site]


def test_every_build_of_metadata_is_timed(serve):
    told = serve(ONE, speculate=False, probe="metadata-time")["metadata-time"]
    assert len(told["seconds"]) == len(LENGTHS) * DRAFTS
    assert all(seconds > 0 for seconds in told["seconds"])
    phases = told["phases"]
    assert {len(seconds) for seconds in phases.values()} == {len(LENGTHS)}
    for phase in ("prepare", "metadata", "forward", "sample", "rest"):
        assert min(phases[phase]) > 0, phase
