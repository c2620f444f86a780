"""Speculation with ``mamba_cache_mode="all"`` keeps its slots right (vllm#41233)."""

from hybridwatch_engine.fixes.fix import Finding, Fix, Header
from hybridwatch_engine.source import SourceTree, mentions

HEADER = Header(
    id="all-cache-spec-decode",
    target="v1/attention/backends/mamba_attn.py, model_executor/layers/mamba/mamba_mixer2.py, "
    "v1/worker/gpu_model_runner.py",
    why="With every block's state cached and drafts in flight, too few slots are reserved, and "
    "after a rejected draft the state is read from a slot that holds another step's state.",
    how="Reserves the speculative slots and remembers which block the previous step wrote last.",
    upstream="vllm#41233 (issue vllm#39809)",
    present_from="0.22.0",
    switch="probe",
    scenario="none yet",
    remove_when="no supported release has mamba_cache_mode='all'; 0.32.0 took it out",
)


def probe(tree: SourceTree) -> Finding:
    """Look for the anchor of the previous step, the part that only this fix brought."""
    path = "v1/attention/backends/mamba_attn.py"
    module = tree.module(path)
    if module is None or not mentions(module, "block_idx_last_scheduled_token"):
        return Finding("not-applicable", f"{path} knows no cache mode 'all'")
    if mentions(module, "block_idx_last_scheduled_token_prev_step"):
        return Finding("present", f"{path} keeps the block that the previous step wrote last")
    return Finding("lacking", f"{path} does not remember the previous step's block")


FIX = Fix(HEADER, probe)
