"""The CPU kernels of ``all`` mode and of speculation, against loops and Triton; no engine."""

import json
import os
import subprocess

import pytest

from hybridwatch_lab.in_engine import variables

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("the CPU kernels have changed, so each is held against loops and Triton"),
]

LIMITS = {"float32": 1e-5, "bfloat16": 1e-2, "int32": 0}
CASES, INTERPRETED = 240, 16
PLANTED_CASES = 120
"""Enough that each defect shows in six of them or more."""
KERNELS = [
    "align_after",
    "align_before",
    "chunk_scan",
    "conv_prefill",
    "conv_update",
    "state_update",
    "state_update_one_head",
]
SCAN = "selective_scan"
"""Of Mamba1; its kernel is written in CUDA, and no interpreter runs that."""
DEFECTS = {
    "history-one-early": "conv_update",
    "block-end-one-late": "conv_prefill",
    "accepted-one-less": "state_update",
    "last-state-everywhere": "state_update",
    "written-before-read": "state_update",
    "chunk-of-the-row-before": "chunk_scan",
    "accepted-drafts-forgotten": "align_",
    "state-kept-from-others": "selective_scan",
}
"""What may be planted, and the kernels in which it is."""

# All in one process, since vLLM takes ten seconds to import: every defect and none, then the
# demonstration of the fault, as released and with a loop in place of the compiled kernel.
SHOWN = f"""
import contextlib, io, json
import vllm._custom_ops
from hybridwatch_engine.cpu.kernels import fault
from hybridwatch_engine_lab.studies.kernels import plain
from hybridwatch_engine_lab.studies.kernels.checking import check
from hybridwatch_engine_lab.studies.kernels.checking import DEFECTS

def demonstrated():
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        status = fault.main()
    return {{"status": status, "said": said.getvalue()}}

def mended(state, x, dt, a, b, c, d, z, bias, softplus, read, write, null, out, accepted, starts):
    plain.state_update(
        state=state, x=x, dt=dt, a=a, b=b, c=c, d=d, dt_bias=bias, z=z,
        dt_softplus=softplus, out=out, state_batch_indices=read, dst_state_batch_indices=write,
        num_accepted_tokens=accepted, cu_seqlens=starts,
    )

released = demonstrated()
planted = {{name: check({PLANTED_CASES}, 0, 0, name).to_json() for name in DEFECTS}}
planted[""] = check({PLANTED_CASES}, 0, 0).to_json()
vllm._custom_ops.selective_state_update_cpu = mended
print(json.dumps({{"planted": planted, "released": released, "mended": demonstrated()}}))
"""


@pytest.fixture(scope="module")
def call(sides):
    """Run the engine's Python; vLLM's talk is kept from the answer."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(sides[0].spec.interpreter), *words],
            env={**os.environ, **variables()},
            capture_output=True, text=True, timeout=400, check=False,
        )  # fmt: skip

    return run


@pytest.fixture(scope="module")
def shown(call):
    """What the check and the demonstration say."""
    done = call("-c", SHOWN)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def planted(shown):
    """What the check says of every defect, and of none."""
    return shown["planted"]


def test_outputs_and_states_are_those_of_the_loops_and_of_triton(call):
    sizes = ("--cases", str(CASES), "--interpreted", str(INTERPRETED))
    done = call("-m", "hybridwatch_engine_lab.studies.kernels", *sizes, "--seed", "1", "--json")
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    told = json.loads(done.stdout)
    assert (told["cases"], told["failures"]) == (CASES, [])
    compared = {(worst["kernel"], worst["reference"]) for worst in told["worst"]}
    both = {(kernel, by) for kernel in KERNELS for by in ("plain loop", "Triton")}
    assert compared == both | {(SCAN, "plain loop")}
    for worst in told["worst"]:
        assert worst["error"] <= LIMITS[worst["dtype"]]


def test_every_defect_is_planted(planted):
    assert set(planted) == {"", *DEFECTS}
    assert planted[""]["ok"]


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_found_where_it_is(planted, defect):
    told = planted[defect]
    assert not told["ok"]
    found = {failure["kernel"] for failure in told["failures"]}
    assert all(kernel.startswith(DEFECTS[defect]) for kernel in found), found


def test_the_compiled_state_update_is_shown_to_be_at_fault(shown):
    released = shown["released"]
    assert released["status"] == 0
    said = released["said"].splitlines()
    assert [line.split("  ")[0] for line in said if line.endswith("WRONG")] == [
        "three tokens, a slot each",
        "two tokens accepted before",
        "two rows, two slots each",
        "another slot to write to",
    ]


def test_a_mended_state_update_is_not(shown):
    assert shown["mended"]["status"] == 1
    assert "WRONG" not in shown["mended"]["said"]
