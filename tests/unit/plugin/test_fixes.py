"""Fix registry: headers are whole, probes read the code, the switchboard keeps the books."""

import dataclasses
import json
import pkgutil
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from hybridwatch_engine import settings
from hybridwatch_engine.fixes.fix import NOWHERE, Finding, Fix, State
from hybridwatch_engine.fixes.headers import header, read_headers
from hybridwatch_engine.fixes.registry import FIXES, Switchboard, registered
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree

from hybridwatch.errors import ScenarioError
from hybridwatch.records.identity import FixState
from hybridwatch.scenarios.fixes import CATALOGUE, FIX_PARTS, load_fixes, start_fixes
from tests.shipped import ROOT
from tests.unit.plugin import scheduling_sources, speculation_sources

RUNNER = "v1/worker/gpu_model_runner.py"
MAMBA = "v1/attention/backends/mamba_attn.py"
TABLE = "v1/worker/block_table.py"
TABLES_V2 = "v1/worker/gpu/block_table.py"
RUNNER_V2 = "v1/worker/gpu/model_runner.py"
HYBRID = "v1/worker/gpu/model_states/mamba_hybrid.py"
DRAFT = "v1/worker/gpu/spec_decode/speculator.py"
PROPOSER = "v1/spec_decode/draft_model.py"
SAMPLER = "v1/sample/ops/topk_topp_sampler.py"
SCHEDULER = "v1/core/sched/scheduler.py"
COORDINATOR = "v1/core/kv_cache_coordinator.py"
MANAGER = "v1/core/single_type_kv_cache_manager.py"

SPLITS_BY_FLAG = """
class BaseMambaAttentionMetadataBuilder:
    def _compute_common_metadata(self, common):
        split_decodes_and_prefills(common, treat_short_extends_as_decodes=False)
"""


def sampler(condition: str) -> str:
    """A sampler for CPUs that leaves early, without seeds, under a condition."""
    return f"""
class TopKTopPSampler:
    def forward_cpu(self, logits, generators, rows):
        if {condition}:
            return drawn(logits)
        return drawn_with(generators)
"""


def tables_v2(gather: str, dummy: str) -> dict[str, str]:
    """The block tables of model runner V2: what they are laid out for, and a dummy run's rows."""
    return {
        TABLES_V2: f"""
class BlockTables:
    def gather_block_tables(self, requests, {gather}): ...
    def get_dummy_block_tables(self, rows):
        return table[:rows]{dummy}
"""
    }


CLEARED = tables_v2("num_reqs_padded", ".zero_()")
KEPT = tables_v2("out", "")


def tables(commit: bool, clear: bool, vacate: bool) -> dict[str, str]:
    """Runner V1 and its block table with or without each part of the fix."""
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
    """The whole is present when all parts are; each part looks at its own lines alone."""
    whole = "stale-block-table"
    finished, vacated, dummy = (f"{whole}-{part}-rows" for part in ("finished", "vacated", "dummy"))
    absent = {RUNNER: "class GPUModelRunner: ..."}
    return [
        (whole, "present", tables(True, True, True) | CLEARED),
        (whole, "lacking", tables(True, True, False) | CLEARED),
        (whole, "lacking", tables(False, True, True) | CLEARED),
        (whole, "lacking", tables(True, True, True) | KEPT),
        (whole, "not-applicable", tables(True, True, True)),
        (dummy, "present", tables(False, False, False) | CLEARED),
        (dummy, "lacking", tables(True, True, True) | KEPT),
        (finished, "present", tables(True, True, False)),
        (finished, "lacking", tables(False, True, True)),
        (finished, "lacking", tables(True, False, True)),
        (vacated, "present", tables(False, False, True)),
        (vacated, "lacking", tables(True, True, False)),
        *((fix, "not-applicable", absent) for fix in (whole, finished, vacated, dummy)),
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


APART = "q = self.q_layernorm(q.view(tokens, heads, size))"
IN_ONE_ROW = f"{APART}; q = q.view(tokens, heads * size)"


def rotary(rotates, views):
    """The rotary layer of a CPU, and the attention of LFM2 that calls it."""
    return {
        "model_executor/layers/rotary_embedding/base.py": f"""
class RotaryEmbedding:
    def forward_cpu(self, positions, query, key):
        {rotates}
""",
        "model_executor/models/lfm2.py": f"""
class Lfm2Attention:
    def forward(self, positions, q, k, v):
        {views}
        q, k = self.rotary_emb(positions, q, k)
        q = q.view(tokens, heads * size)
""",
    }


def window(kept: str) -> dict[str, str]:
    """A CPU's gated delta net that keeps this of its window behind a step of drafts."""
    return {"model_executor/layers/mamba/ops/cpu/gdn_attention.py": f"""
def _spec_forward(layer, window, width, state_len):
    return {kept}
"""}  # fmt: skip


def lookup(excepted: str) -> dict[str, str]:
    """A lookup that gives a head's margin to all groups but those of this kind."""
    return {COORDINATOR: f"""
class HybridKVCacheCoordinator:
    def find_longest_cache_hit(self, hashes, length):
        if use_eagle{f" and not isinstance(spec, {excepted})" if excepted else ""}:
            length = length + spec.block_size
"""}  # fmt: skip


def split(condition: str) -> dict[str, str]:
    """A scheduler that cuts steps under a condition."""
    return {SCHEDULER: f"""
class Scheduler:
    def _mamba_block_aligned_split(self, request, num_new_tokens):
        if {condition}:
            return num_new_tokens
"""}  # fmt: skip


def boundaries(coordinator: str) -> dict[str, str]:
    """A manager that keeps the states at boundaries which the coordinator may name."""
    return {COORDINATOR: coordinator, MANAGER: """
class MambaManager:
    def reachable_block_mask(cls, reachable_boundaries): ...
"""}  # fmt: skip


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
    ("stale-padded-rows", "present", CLEARED),
    ("stale-padded-rows", "lacking", KEPT),
    ("stale-padded-rows", "not-applicable", {TABLES_V2: "class BlockTables: ..."}),
    ("decode-graph-by-shape", "present", {RUNNER_V2: "get_uniform_decode_token_count(2, 2, 1)"}),
    ("decode-graph-by-shape", "lacking", {RUNNER_V2: "get_uniform_token_count(2, 2, 1)"}),
    ("decode-graph-by-shape", "not-applicable", {RUNNER_V2: "class GPUModelRunner: ..."}),
    ("decode-graph-by-shape", "not-applicable", {}),
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
    ("seeds-beside-others", "lacking", {SAMPLER: sampler("len(generators) != rows")}),
    ("seeds-beside-others", "present", {SAMPLER: sampler("not generators")}),
    ("seeds-beside-others", "not-applicable", {SAMPLER: "class TopKTopPSampler: ..."}),
    ("cpu-rotary-heads", "lacking", rotary("ops.rotary_embedding(query, key)", APART)),
    ("cpu-rotary-heads", "present", rotary("self.forward_native(query, key)", APART)),
    ("cpu-rotary-heads", "present", rotary("ops.rotary_embedding(query.flatten(1), key)", APART)),
    ("cpu-rotary-heads", "present", rotary("ops.rotary_embedding(query, key)", IN_ONE_ROW)),
    ("cpu-rotary-heads", "not-applicable", {}),
    ("cpu-delta-short-steps", "lacking", window("window[:, offset : offset + state_len - q_i]")),
    ("cpu-delta-short-steps", "present", window("window[:, : width - 2 + q_i]")),
    ("cpu-delta-short-steps", "not-applicable", {}),
    ("mamba-lookup-margin", "present", lookup("MambaSpec")),
    ("mamba-lookup-margin", "lacking", lookup("")),
    ("mamba-lookup-margin", "not-applicable", {COORDINATOR: "class KVCacheCoordinator: ..."}),
    ("resumed-block-split", "present", split("start >= request.num_tokens - 1")),
    ("resumed-block-split", "lacking", split("request.num_output_tokens")),
    ("resumed-block-split", "lacking", split("start >= request.num_prompt_tokens")),
    ("resumed-block-split", "not-applicable", {SCHEDULER: "class Scheduler: ..."}),
    ("replay-boundary", "present", boundaries("def replay_boundaries(prompt): ...")),
    ("replay-boundary", "present", boundaries("""
class KVCacheCoordinator:
    def get_replay_boundaries(self, request): ...
""")),
    ("replay-boundary", "lacking", boundaries("class KVCacheCoordinator: ...")),
    ("replay-boundary", "not-applicable", {MANAGER: "class MambaManager: ..."}),
    *scheduling_sources.cases(),
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


def test_harness_and_plugin_read_the_same_of_every_fix():
    ours = [one.model_dump(exclude={"releases"}) for one in CATALOGUE.values()]
    theirs = [dataclasses.asdict(fix.header) for fix in FIXES.values()]
    assert list(CATALOGUE) == [entry.pop("id") for entry in theirs]
    assert [entry.pop("releases") for entry in theirs] == [
        one.releases for one in CATALOGUE.values()
    ]
    assert theirs == ours
    starting = {fix.header.id for fix in FIXES.values() if fix.header.switch == "start"}
    assert starting - FIX_PARTS.keys() == start_fixes()


@pytest.mark.parametrize("fix", FIXES.values(), ids=lambda fix: fix.header.id)
def test_header_is_whole(fix):
    header = fix.header
    texts = (header.target, header.why, header.how, header.upstream, header.present_from)
    assert all(text.strip() for text in (*texts, header.scenario, header.remove_when))
    assert header.upstream.startswith("vllm")
    assert bool(fix.parts or fix.ways) == (header.switch != "probe")
    assert not fix.parts or not fix.ways
    # What no release has cannot be taken out of one.
    assert header.present_from != NOWHERE or fix.revert is None
    for scenario in header.scenario.split(", "):
        assert (ROOT / "scenarios" / f"{scenario}.toml").is_file()


def entries(*ids, **keys):
    """Entries of a file that is otherwise right."""
    known = tomllib.loads((ROOT / "engine" / "fixes.toml").read_text())["fix"]["conv-anchor"]
    return read_headers({"fix": {id_: {**known, **keys} for id_ in ids}})


def a_package(folder, monkeypatch, **modules):
    """A package of fixes, and its name."""
    (folder / "made_up").mkdir()
    monkeypatch.syspath_prepend(folder)
    for name, text in modules.items():
        (folder / "made_up" / f"{name}.py").write_text(text)
    return [str(folder / "made_up")], "made_up"


def test_a_fix_without_a_module_is_named(tmp_path, monkeypatch):
    package = a_package(tmp_path, monkeypatch, other="")
    match = r"^engine/fixes.toml: fix.new-one: expected a module new_one.py in .*, found other$"
    with pytest.raises(ValueError, match=match):
        registered(entries("new-one"), *package)


def test_a_module_without_an_entry_is_named(tmp_path, monkeypatch):
    package = a_package(tmp_path, monkeypatch, new_one="", stray="")
    match = r"^engine/fixes.toml: expected an entry for each module in .*, found none for stray$"
    with pytest.raises(ValueError, match=match):
        registered(entries("new-one"), *package)


def test_a_module_that_does_not_hold_the_fix_of_its_entry_is_named(tmp_path, monkeypatch):
    package = a_package(tmp_path, monkeypatch, new_one="")
    match = r"^engine/fixes.toml: fix.new-one: expected a Fix of this id in new_one.py, found none$"
    with pytest.raises(ValueError, match=match):
        registered(entries("new-one"), *package)


def test_what_an_entry_says_of_switching_must_be_what_the_module_can(tmp_path, monkeypatch):
    (entry,) = entries("conv-anchor", ways=["apply", "revert"]).values()
    module = "from hybridwatch_engine.fixes.conv_anchor import FIX\n"
    module += f"FIX = type(FIX)({entry!r}, FIX.probe, apply=FIX.apply)\n"
    module = "from hybridwatch_engine.fixes.fix import Header\n" + module
    package = a_package(tmp_path, monkeypatch, conv_anchor=module)
    match = (
        r"^engine/fixes.toml: fix.conv-anchor.ways: expected \['apply'\] as in conv_anchor.py, "
        r"found \['apply', 'revert'\]$"
    )
    with pytest.raises(ValueError, match=match):
        registered({"conv-anchor": entry}, *package)


def test_a_fix_that_no_entry_describes_is_named():
    with pytest.raises(ValueError, match=r"^engine/fixes.toml: fix.new-one: missing; expected one"):
        header("new-one")


def test_an_unknown_key_of_a_fix_is_named_by_plugin_and_harness(tmp_path):
    match = r"^engine/fixes.toml: fix.new-one: unknown key: expected one of .*, found 'ocasion'$"
    with pytest.raises(ValueError, match=match):
        entries("new-one", ocasion="replays")
    text = (ROOT / "engine" / "fixes.toml").read_text()
    (tmp_path / "fixes.toml").write_text(text.replace("occasion =", "ocasion =", 1))
    with pytest.raises(ScenarioError) as refused:
        load_fixes(tmp_path / "fixes.toml", Path("engine/fixes.toml"))
    lead = "engine/fixes.toml: fix.padded-rows-prefilling"
    assert str(refused.value).splitlines() == [
        f"{lead}.occasion: missing; expected a text",
        f'{lead}.ocasion: unknown key; did you mean "occasion"?',
    ]


def test_a_missing_key_and_a_part_that_is_no_fix_are_named():
    with pytest.raises(ValueError, match=r"^engine/fixes.toml: fix.x.target: missing"):
        read_headers({"fix": {"x": {}}})
    match = r"^engine/fixes.toml: fix.x.parts: expected ids of fixes, found 'y'$"
    with pytest.raises(ValueError, match=match):
        entries("x", parts=["y"])


def test_every_exercise_names_a_function_that_is_there():
    for fix in FIXES.values():
        assert (fix.exercise is None) == (fix.ways == ())
        if fix.exercise is not None:
            assert callable(pkgutil.resolve_name(fix.exercise.observe))


def test_a_whole_is_switched_by_its_parts(tmp_path):
    whole = Fix(a_header(parts=("x", "y")), lambda _: Finding("present", "seen"))
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


def a_header(**fields):
    (entry,) = entries("x").values()
    return dataclasses.replace(entry, **fields)


def fix_for(state, *, revert=True):
    wrong = PatchSet(Patch(Engine, "answer", lambda _: "wrong"))
    right = PatchSet(Patch(Engine, "answer", lambda _: "mended"))
    return Fix(
        a_header(),
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
