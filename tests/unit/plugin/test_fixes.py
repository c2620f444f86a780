"""Fix registry: headers are whole, probes read the code, the switchboard keeps the books."""

import dataclasses
import json
from typing import get_args

import pytest
from hybridwatch_engine import settings
from hybridwatch_engine.fixes.fix import NOWHERE, Finding, Fix, Header, State
from hybridwatch_engine.fixes.registry import FIXES
from hybridwatch_engine.fixes.switchboard import Switchboard
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree

from hybridwatch.record.identity import FixState
from hybridwatch.scenario.fixes import FIXES as SCENARIO_FIXES
from hybridwatch.scenario.fixes import START_FIXES
from tests.unit.plugin import speculation_sources

RUNNER = "v1/worker/gpu_model_runner.py"
MAMBA = "v1/attention/backends/mamba_attn.py"
TABLE = "v1/worker/block_table.py"
HYBRID = "v1/worker/gpu/model_states/mamba_hybrid.py"
DRAFT = "v1/worker/gpu/spec_decode/speculator.py"
PROPOSER = "v1/spec_decode/draft_model.py"

# Their modules say why: what would have to be wrapped lies inside a long function.
ONLY_REVERTED = {"all-cache-spec-decode-anchor"}
ONLY_APPLIED = {"accepted-counts"}

SPLITS_BY_FLAG = """
class BaseMambaAttentionMetadataBuilder:
    def _compute_common_metadata(self, common):
        split_decodes_and_prefills(common, treat_short_extends_as_decodes=False)
"""


def tables(commit: bool, clear: bool, vacate: bool) -> dict[str, str]:
    """A runner and a block table with or without each part of the fix."""
    moved = "source, :3] = 0" if vacate else "target, :3] = rows[source, :3]"
    return {
        RUNNER: f"""
class GPUModelRunner:
    def _dummy_run(self):
        self.table.{"commit_block_table" if commit else "forget"}(3)
""",
        TABLE: f"""
class BlockTable:
    def {"clear_row" if clear else "keep_row"}(self, row): ...
    def move_row(self, source, target):
        rows[{moved}
""",
    }


def stale_block_table_cases() -> list[tuple[str, str, dict[str, str]]]:
    """The whole is present when both halves are; each half looks at its own lines alone."""
    whole = "stale-block-table"
    finished, vacated = f"{whole}-finished-rows", f"{whole}-vacated-rows"
    absent = {RUNNER: "class GPUModelRunner: ..."}
    return [
        (whole, "present", tables(True, True, True)),
        (whole, "lacking", tables(True, True, False)),
        (whole, "lacking", tables(False, True, True)),
        (finished, "present", tables(True, True, False)),
        (finished, "lacking", tables(False, True, True)),
        (finished, "lacking", tables(True, False, True)),
        (vacated, "present", tables(False, False, True)),
        (vacated, "lacking", tables(True, True, False)),
        *((fix, "not-applicable", absent) for fix in (whole, finished, vacated)),
    ]


def lengths(target: str, draft: str) -> dict[str, str]:
    """A hybrid target and a draft whose metadata are built with these."""
    return {
        HYBRID: f"""
class MambaHybridModelState:
    def prepare_attn(self, batch):
        build_attn_metadata(max_seq_len={target})
""",
        DRAFT: f"self.{draft} = 3",
    }


def draft_max_seq_len_cases() -> list[tuple[str, str, dict[str, str]]]:
    """The whole is present when both halves are; each half looks at its own file alone."""
    whole = "draft-max-seq-len"
    target, draft = f"{whole}-target", f"{whole}-draft"
    healthy = lengths("max_seq_len", "draft_max_seq_len")
    bad_target = lengths("self.max_model_len", "draft_max_seq_len")
    bad_draft = lengths("max_seq_len", "max_model_len")
    absent = {RUNNER: ""}
    return [
        *((fix, "present", healthy) for fix in (whole, target, draft)),
        *((fix, "lacking", bad_target) for fix in (whole, target)),
        *((fix, "lacking", bad_draft) for fix in (whole, draft)),
        (draft, "present", bad_target),
        (target, "present", bad_draft),
        *((fix, "not-applicable", absent) for fix in (whole, target, draft)),
        (whole, "not-applicable", {DRAFT: bad_draft[DRAFT]}),
    ]


def dummy_run(rows: str) -> str:
    """A dummy run that calls this many rows real."""
    return f"""
class GPUModelRunner:
    def _build_attention_metadata(self, num_reqs):
        is_prefilling = computed < prompt
    def _dummy_run(self):
        self._build_attention_metadata(num_reqs={rows})
"""


def dispatch(looks_at: str) -> str:
    """A runner whose choice of graph looks at this."""
    return f"""
class GPUModelRunner:
    def _is_uniform_decode(self):
        return self.{looks_at}
    def _determine_batch_execution_and_padding(self):
        return self._is_uniform_decode()
"""


def drafters(served: str) -> dict[str, str]:
    """A runner that gives these drafters the metadata of their own cache group."""
    runner = f"""
class GPUModelRunner:
    def _build_attention_metadata(self):
        if isinstance(self.drafter, {served}):
            return self.drafter.kv_cache_gid
"""
    return {RUNNER: runner, PROPOSER: "class DraftModelProposer: ..."}


# What each probe must say of code that has, lacks, or cannot have its fix. The texts are the
# smallest that hold the telling lines; the real releases are probed where an engine is installed.
CASES = [
    ("padded-rows-prefilling", "present", {RUNNER: """
class GPUModelRunner:
    def _build_attention_metadata(self, num_reqs):
        is_prefilling = computed < prompt
        is_prefilling[num_reqs:] = False
"""}),
    ("padded-rows-prefilling", "lacking", {RUNNER: """
class GPUModelRunner:
    def _build_attention_metadata(self, num_reqs):
        is_prefilling = computed < prompt
"""}),
    ("padded-rows-prefilling", "not-applicable", {RUNNER: """
class GPUModelRunner:
    def _build_attention_metadata(self, num_reqs):
        return None
"""}),
    ("single-token-extend", "present", {MAMBA: """
class BaseMambaAttentionMetadataBuilder:
    def _compute_common_metadata(self, common):
        is_prefilling[rows] = False
        split_decodes_and_prefills(common, treat_short_extends_as_decodes=False)
"""}),
    ("single-token-extend", "lacking", {MAMBA: """
class BaseMambaAttentionMetadataBuilder:
    def _compute_common_metadata(self, common):
        split_decodes_and_prefills(common, treat_short_extends_as_decodes=False)
"""}),
    ("single-token-extend", "not-applicable", {MAMBA: """
class BaseMambaAttentionMetadataBuilder:
    def _compute_common_metadata(self, common):
        split_decodes_and_prefills(common)
"""}),
    *draft_max_seq_len_cases(),
    *stale_block_table_cases(),
    ("dummy-run-padding", "lacking", {RUNNER: dummy_run("num_reqs_padded")}),
    ("dummy-run-padding", "present", {RUNNER: dummy_run("num_reqs")}),
    ("dummy-run-padding", "not-applicable", {RUNNER: "class GPUModelRunner: ..."}),
    ("one-token-prompt", "lacking", {RUNNER: dispatch("shape"), MAMBA: SPLITS_BY_FLAG}),
    ("one-token-prompt", "present", {RUNNER: dispatch("has_prefill"), MAMBA: SPLITS_BY_FLAG}),
    ("one-token-prompt", "not-applicable", {RUNNER: dispatch("shape"), MAMBA: """
class BaseMambaAttentionMetadataBuilder:
    def _compute_common_metadata(self, common):
        split_decodes_and_prefills(common)
"""}),
    ("draft-model-cache-group", "lacking", drafters("(EagleProposer, DFlashProposer)")),
    ("draft-model-cache-group", "present", drafters("EagleProposer | DraftModelProposer")),
    ("draft-model-cache-group", "present", drafters("SpecDecodeBaseProposer")),
    ("draft-model-cache-group", "not-applicable", {RUNNER: drafters("EagleProposer")[RUNNER]}),
    *speculation_sources.cases(),
]  # fmt: skip


@pytest.mark.parametrize(("fix_id", "state", "files"), CASES)
def test_probe_tells_the_state_from_the_code(tmp_path, fix_id, state, files):
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    finding = FIXES[fix_id].probe(SourceTree(tmp_path))
    assert finding.state == state
    assert finding.evidence


def test_every_fix_and_state_has_a_case():
    assert {(fix, state) for fix, state, _ in CASES} == {
        (fix, state) for fix in FIXES for state in get_args(State)
    }


def test_harness_and_plugin_know_the_same_fixes():
    assert set(SCENARIO_FIXES) == set(FIXES)
    parts = {fix.header.id: fix.header.switch for fix in FIXES.values() if not fix.parts}
    assert {fix for fix, switch in parts.items() if switch == "start"} == START_FIXES


@pytest.mark.parametrize("fix", FIXES.values(), ids=lambda fix: fix.header.id)
def test_header_is_whole(fix):
    assert all(str(value).strip() for value in dataclasses.asdict(fix.header).values())
    assert fix.header.upstream.startswith("vllm")
    switchable = bool(fix.parts or fix.apply or fix.revert)
    assert switchable == (fix.header.switch != "probe")
    if switchable and not fix.parts:
        assert (fix.apply is None) == (fix.header.id in ONLY_REVERTED)
        # What no release has cannot be taken out of one.
        stays = fix.header.present_from == NOWHERE or fix.header.id in ONLY_APPLIED
        assert (fix.revert is None) == stays


def test_a_whole_is_switched_by_its_parts(tmp_path):
    whole = dataclasses.replace(fix_for("present"), apply=None, revert=None, parts=("x", "y"))
    other = dataclasses.replace(
        fix_for("lacking"), apply=lambda: PatchSet(Patch(Engine, "other", lambda _: 2))
    )
    board = Switchboard(SourceTree(tmp_path), {"whole": whole, "x": fix_for("present"), "y": other})
    assert board.states() == {"whole": "lacking", "x": "present", "y": "lacking"}
    assert board.switch("whole", True) == "applied"
    assert board.switch("x", False) == "reverted"
    assert board.states() == {"whole": "reverted", "x": "reverted", "y": "applied"}
    assert board.switch("whole", True) == "applied"
    assert board.switch("y", False) == "lacking"
    assert (Engine.answer, Engine.other) == ("right", 1)


class Engine:
    answer = "right"
    other = 1


def fix_for(state, *, revert=True):
    header = Header(*("x",) * 6, "live", "x", "x")
    wrong = PatchSet(Patch(Engine, "answer", lambda _: "wrong"))
    right = PatchSet(Patch(Engine, "answer", lambda _: "mended"))
    return Fix(
        header,
        lambda _: Finding(state, "seen"),
        apply=lambda: right,
        revert=(lambda: wrong) if revert else None,
    )


def test_switching_out_and_in_again(tmp_path):
    board = Switchboard(SourceTree(tmp_path), {"x": fix_for("present")})
    assert board.states() == {"x": "present"}
    assert board.switch("x", False) == "reverted"
    assert Engine.answer == "wrong"
    assert board.switch("x", True) == "present"
    assert Engine.answer == "right"


def test_switching_in_and_out_again(tmp_path):
    board = Switchboard(SourceTree(tmp_path), {"x": fix_for("lacking")})
    assert board.switch("x", True) == "applied"
    assert Engine.answer == "mended"
    assert board.switch("x", False) == "lacking"
    assert Engine.answer == "right"


@pytest.mark.parametrize(
    ("fix", "wanted"),
    [(fix_for("not-applicable"), True), (fix_for("present", revert=False), False)],
)
def test_impossible_switch_is_refused(tmp_path, fix, wanted):
    board = Switchboard(SourceTree(tmp_path), {"x": fix})
    with pytest.raises(ValueError, match="fix x cannot be"):
        board.switch("x", wanted)


def test_unknown_fix_is_refused_and_the_known_are_named(tmp_path):
    with pytest.raises(ValueError, match="no fix 'y'; known: x"):
        Switchboard(SourceTree(tmp_path), {"x": fix_for("present")}).switch("y", True)


def test_states_are_words_of_the_record(tmp_path):
    words = {state.value for state in FixState}
    assert {*get_args(State), "applied", "reverted"} == words


def test_engine_without_our_variable_is_left_alone(monkeypatch):
    monkeypatch.delenv(settings.VARIABLE, raising=False)
    assert not settings.from_environment().active


def test_settings_are_read(monkeypatch):
    monkeypatch.setenv(settings.VARIABLE, json.dumps({"graph_replay": True, "fixes": {"x": False}}))
    read = settings.from_environment()
    assert (read.active, read.graph_replay, read.fixes) == (True, True, {"x": False})


@pytest.mark.parametrize("text", ['{"graph": 1}', "[]", "{"])
def test_settings_that_make_no_sense_are_refused(monkeypatch, text):
    monkeypatch.setenv(settings.VARIABLE, text)
    with pytest.raises(ValueError, match=r"HYBRIDWATCH_ENGINE|Expecting"):
        settings.from_environment()
