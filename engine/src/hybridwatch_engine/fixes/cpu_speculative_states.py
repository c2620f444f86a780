"""The CPU's state update stores a state for each draft; beyond upstream."""

from hybridwatch_engine.fixes.fix import NOWHERE, Finding, Fix, Header
from hybridwatch_engine.patch import PatchSet
from hybridwatch_engine.source import SourceTree, mentions

_DISPATCH = "model_executor/layers/mamba/ops/ssu_dispatch.py"

HEADER = Header(
    id="cpu-speculative-states",
    target=f"{_DISPATCH} CPUSSUBackend.__call__ (compiled: selective_state_update_cpu)",
    why="The compiled state update of the CPU is told how many drafts were accepted and where the "
    "state behind each token belongs, gives the right outputs, and stores the state behind the "
    "last token where that behind the first belongs. Whatever is rejected is remembered.",
    how="Calls that have accepted counts are served by a kernel of our own, in PyTorch. Put in on "
    "every CPU engine, since without it no speculation on a hybrid model is right there.",
    upstream="vllm: no report of it is known",
    present_from=NOWHERE,
    switch="live",
    scenario="reported/cpu-speculative-states",
    remove_when="the compiled kernel of every supported release stores a state for each token",
)


def probe(tree: SourceTree) -> Finding:
    """Look for a CPU backend that hands accepted counts to the compiled kernel."""
    call = tree.function(_DISPATCH, "CPUSSUBackend.__call__")
    if call is None:
        return Finding("not-applicable", f"{_DISPATCH} has no CPU backend")
    if mentions(call, "_cpp_kernel") and mentions(call, "num_accepted_tokens"):
        return Finding("lacking", f"{_DISPATCH}:{call.lineno} leaves drafts to the compiled kernel")
    return Finding("present", f"{_DISPATCH}:{call.lineno} keeps drafts from the compiled kernel")


def _apply() -> PatchSet:
    """Serve calls that have accepted counts."""
    from hybridwatch_engine.cpu.kernels.install import speculative_state_update

    return speculative_state_update()


FIX = Fix(HEADER, probe, apply=_apply)
