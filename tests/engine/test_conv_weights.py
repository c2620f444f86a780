"""A model that is not in bfloat16 loads on every CPU; no engine."""

import subprocess

import pytest

pytestmark = pytest.mark.engine

# The release repacks on CPUs with AMX; this one shall be one.
LOAD = """
import torch
from vllm.model_executor.layers import utils
from hybridwatch_engine.cpu.platform_gaps import unpacked_conv_weights

torch.cpu._is_amx_tile_supported = lambda: True

def load(dtype):
    layer, weight = torch.nn.Module(), torch.arange(256).view(64, 1, 4).to(dtype)
    layer.weight = torch.nn.Parameter(weight, requires_grad=False)
    try:
        utils.dispatch_cpu_unquantized_gemm(layer, True)
    except NotImplementedError:
        return "refused"
    same = layer.weight.shape == weight.shape and torch.equal(layer.weight, weight)
    return "as it was" if same else "packed"

if not hasattr(torch.ops._C, "causal_conv1d_weight_pack"):
    raise SystemExit("told:,no packer")
told = [load(torch.float32)]
unpacked_conv_weights().install()
print("told:", *told, load(torch.float32), load(torch.bfloat16), sep=",")
"""


def test_only_what_the_packer_knows_is_packed(sides):
    done = subprocess.run(
        [str(sides[0].spec.interpreter), "-c", LOAD],
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    if done.stderr.endswith("told:,no packer\n"):
        pytest.skip("what is compiled for this processor (no AVX-512) packs no weights")
    assert done.returncode == 0, done.stderr[-3000:]
    # The first is the fault itself.
    assert done.stdout.splitlines()[-1] == "told:,refused,as it was,packed"
