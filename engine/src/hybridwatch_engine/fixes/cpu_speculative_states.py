"""The CPU's state update stores a state for each draft; beyond upstream."""

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import PatchSet
from hybridwatch_engine.source import SourceTree, mentions

_DISPATCH = "model_executor/layers/mamba/ops/ssu_dispatch.py"


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


FIX = Fix(
    header("cpu-speculative-states"),
    probe,
    apply=_apply,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.kernels:states_behind_tokens",
        with_fix={"states": [1.0, 2.0, 3.0], "outputs": [1.0, 2.0, 3.0]},
        without_fix={"states": [3.0, 2.0, 3.0], "outputs": [1.0, 2.0, 3.0]},
    ),
)
