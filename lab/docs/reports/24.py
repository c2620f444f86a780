import json
import tempfile
from pathlib import Path

import torch
from vllm import EngineArgs, SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1 import kv_cache_interface as kv
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager

BLOCK, UNIT, NUMBER = 128, 16, 64
folder = tempfile.mkdtemp()
model = {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}  # any: nothing is computed
Path(folder, "config.json").write_text(json.dumps(model))
arguments = EngineArgs(folder, skip_tokenizer_init=True, max_model_len=1024, block_size=BLOCK)
config = arguments.create_engine_config()
config.cache_config.prefix_match_unit, config.cache_config.mamba_cache_mode = UNIT, "align"
config.cache_config.num_gpu_blocks = NUMBER
specs = [
    kv.MambaSpec(
        block_size=BLOCK, shapes=((2,),), dtypes=(torch.float32,), mamba_cache_mode="align",
        num_prefill_checkpoint_blocks=1, prefill_checkpoint_alignment=1,
    ),
    kv.FullAttentionSpec(block_size=BLOCK, num_kv_heads=1, head_size=8, dtype=torch.float32),
]  # fmt: skip
cache = kv.KVCacheConfig(NUMBER, [], [kv.KVCacheGroupSpec([str(s)], s) for s in specs])
scheduler = Scheduler(config, cache, StructuredOutputManager(config), BLOCK, UNIT)
mamba = scheduler.kv_cache_manager.coordinator.single_type_managers[0]
init_none_hash(sha256)
for name, tokens in {"first": 120, "second": 261, "third": 150}.items():
    hasher, sampling = get_request_block_hasher(UNIT, sha256), SamplingParams(max_tokens=1)
    request = Request(name, list(range(tokens)), sampling, None, block_hasher=hasher)
    scheduler.add_request(request)
    while not request.is_finished():
        step = scheduler.schedule()
        end = request.num_computed_tokens
        start = end - step.num_scheduled_tokens[name]
        states = sorted({end, mamba._checkpoints.get(name, [end])[0]})
        print(f"{name}: a step computes tokens {start} to {end}, stores states after {states}")
        sampled = [[0]] if end == tokens else [[]]
        scheduler.update_from_output(step, ModelRunnerOutput([name], {name: 0}, sampled))
