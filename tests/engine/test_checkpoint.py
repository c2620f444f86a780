"""States stored amid a prompt, against an element-wise reading of the Triton kernel; no engine."""

import subprocess

import pytest

from hybridwatch.engines.builds import named_build
from tests.engine.conftest import BUILD

pytestmark = pytest.mark.engine

COMPARE = """
import sys
import torch
from hybridwatch_engine.cpu.kernels.checkpoint import Checkpoints, store

late = int(sys.argv[1])
torch.manual_seed(7)
channels, length, heads = 5, 3, 4
offsets, blocks, chunks = (torch.tensor(t) for t in ([4, 0, 8], [6, 1, 2], [0, 1, 3]))
starts = torch.tensor([0, 7, 9, 20])  # one more than rows: where the last one ends
x, states = torch.randn(channels, 20), torch.randn(5, heads, 2)
conv, ssm = torch.randn(8, channels, length + 2), torch.randn(8, heads, 2)
wanted_conv, wanted_ssm = conv.clone(), ssm.clone()
for row in (0, 2):
    for channel in range(channels):
        for back in range(length):
            token = starts[row] + offsets[row] - length + back
            wanted_conv[blocks[row], channel, back] = x[channel, token]
    wanted_ssm[blocks[row]] = states[chunks[row]]
store(Checkpoints(starts, offsets + late, blocks, chunks), x, conv, states, ssm, length)
sys.exit(int(not (torch.equal(conv, wanted_conv) and torch.equal(ssm, wanted_ssm))))
"""


@pytest.mark.parametrize(("late", "status"), [(0, 0), (1, 1)], ids=["right", "planted-one-late"])
def test_a_checkpoint_is_what_the_kernel_stores(late, status):
    python = named_build(BUILD).interpreter
    done = subprocess.run(
        [python, "-c", COMPARE, str(late)], capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
