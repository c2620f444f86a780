"""The smallest code that has, lacks or cannot have each fix of speculation on a hybrid model."""

from typing import Final

Case = tuple[str, str, dict[str, str]]

_MAMBA: Final = "v1/attention/backends/mamba_attn.py"
_SPEC: Final = "v1/kv_cache_interface.py"
_RUNNER: Final = "v1/worker/gpu_model_runner.py"
_UTILS: Final = "v1/worker/mamba_utils.py"
_MIXER: Final = "model_executor/layers/mamba/mamba_mixer2.py"
_DISPATCH: Final = "model_executor/layers/mamba/ops/ssu_dispatch.py"
_WITH_DRAFTS: Final = "len(scheduled.scheduled_spec_decode_tokens) > 0"
_ALWAYS: Final = "self.speculative_config is not None"


def cases() -> list[Case]:
    """What each probe must say of which code."""
    return [
        *_all_cache_cases(),
        *_prev_step_cases(),
        *_conv_cases(),
        *_block_end_cases(),
        *_state_update_cases(),
    ]


def _all_cache(
    *, slots: bool = True, rows: bool = True, anchor: bool = True, memory: bool = True
) -> dict[str, str]:
    """Code for the cache mode ``all`` with or without each part of its fix."""

    def sizes(counted: bool) -> str:
        """The drafts are counted in every release, but not in every mode."""
        return f"""
        if self.mamba_cache_mode == "all":
            size = blocks + {"spec.num_speculative_blocks" if counted else "0"}
        else:
            size = spec.num_speculative_blocks
"""

    return {
        _MAMBA: f"""
class BaseMambaAttentionMetadataBuilder:
    def __init__(self, spec):{sizes(slots)}
    def _update_metadata_for_cudagraph_capture(self, metadata):
        block_idx_last_scheduled_token[: metadata.{"num_reqs" if rows else "num_decode_tokens"}]
        block_idx_last_scheduled_token{"_prev_step" if anchor else ""}
""",
        _SPEC: f"""
class MambaSpec:
    def max_memory_usage_bytes(self, spec):{sizes(memory)}
""",
    }


def _all_cache_cases() -> list[Case]:
    """The whole is present when all parts are; each part looks at its own lines alone."""
    whole = "all-cache-spec-decode"
    absent = _all_cache()
    absent[_MAMBA] = absent[_MAMBA].replace("block_idx", "index")
    bad = {
        "slots": _all_cache(slots=False),
        "graph-rows": _all_cache(rows=False),
        "anchor": _all_cache(anchor=False),
        "memory": _all_cache(memory=False),
    }
    parts = [f"{whole}-{part}" for part in bad]
    others = [
        (f"{whole}-{part}", "present", bad[other]) for part in bad for other in bad if part != other
    ]
    return [
        *((fix, "present", _all_cache()) for fix in (whole, *parts)),
        *((whole, "lacking", files) for files in bad.values()),
        *((f"{whole}-{part}", "lacking", files) for part, files in bad.items()),
        *others,
        *((fix, "not-applicable", absent) for fix in (whole, *parts)),
    ]


def _steps(when: str, *, asks: bool = True, forgets: bool = False) -> dict[str, str]:
    """A runner that hands counts and blocks on."""
    return {
        _RUNNER: f"""
class GPUModelRunner:
    def execute_model(self, scheduled):
        use_spec_decode = {when}
    def _build_attention_metadata(self, **_):
        if {"use_spec_decode" if asks else "True"}:
            told = self.num_accepted_tokens, self.mamba_prev_last_scheduled_idx
""",
        _UTILS: f"""
def postprocess_mamba_all(blocks, request):
    {"blocks.pop(request)" if forgets else "blocks[request] = 1"}
""",
    }


def _prev_step_cases() -> list[Case]:
    """Counts and blocks are handed on together; blocks must be remembered besides."""
    counts, anchor = "accepted-counts", "prev-step-anchor"
    lacking = _steps(_WITH_DRAFTS)
    unknown = {_RUNNER: lacking[_RUNNER].replace("execute_model", "run")}
    untold = {_RUNNER: "class GPUModelRunner:\n    def _build_attention_metadata(self): ..."}
    return [
        *((fix, "lacking", lacking) for fix in (counts, anchor)),
        *((fix, "present", _steps(_ALWAYS)) for fix in (counts, anchor)),
        *((fix, "present", _steps(_WITH_DRAFTS, asks=False)) for fix in (counts, anchor)),
        (counts, "lacking", unknown),
        (counts, "present", _steps(_ALWAYS, forgets=True)),
        (anchor, "lacking", _steps(_ALWAYS, forgets=True)),
        *((fix, "not-applicable", untold) for fix in (counts, anchor)),
    ]


def _conv_cases() -> list[Case]:
    """Told by the index that the convolution's update reads by, where there is an anchor."""

    anchor = "block_idx_last_scheduled_token_prev_step_d"

    def mixer(reads: str, *, scans: str = anchor) -> dict[str, str]:
        forward = f"""
class MambaMixer2:
    def conv_ssm_forward(self):
        causal_conv1d_update(initial_state_idx={reads})
        selective_state_update({scans})
"""
        return {_MIXER: forward}

    fix, computed = "conv-anchor", "block_idx_last_computed_token_d"
    return [
        (fix, "lacking", mixer(computed)),
        (fix, "present", mixer(anchor)),
        (fix, "not-applicable", mixer(computed, scans="slots")),
    ]


def _block_end_cases() -> list[Case]:
    """Told by what is done after a step of mode ``all``."""
    fix = "block-end-states"
    after = "def postprocess_mamba_all({}):\n    return {}"
    return [
        (fix, "lacking", {_UTILS: after.format("blocks", "blocks")}),
        (fix, "present", {_UTILS: after.format("copy_bufs", "do_mamba_copy_block(copy_bufs)")}),
        (fix, "not-applicable", {_UTILS: after.format("", "").replace("_all", "_align")}),
    ]


def _state_update_cases() -> list[Case]:
    """Told by what the CPU's backend hands to the compiled kernel."""

    def backend(told: str) -> dict[str, str]:
        call = f"""
class CPUSSUBackend:
    def __call__(self, state, **_):
        self._cpp_kernel({told})
"""
        return {_DISPATCH: call}

    fix = "cpu-speculative-states"
    return [
        (fix, "lacking", backend("state, num_accepted_tokens")),
        (fix, "present", backend("state")),
        (fix, "not-applicable", {_DISPATCH: "class TritonSSUBackend: ..."}),
    ]
