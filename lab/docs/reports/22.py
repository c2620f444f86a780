import os
import tempfile

import torch
from transformers import AutoConfig, AutoModelForCausalLM
from vllm import LLM, SamplingParams
from vllm.model_executor.layers.mamba.mamba_mixer2 import MambaMixer2

os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_CPU_KVCACHE_SPACE="1")
hybrid = AutoConfig.for_model(
    "granitemoehybrid", layer_types=["mamba", "attention"], num_hidden_layers=2, vocab_size=256,
    hidden_size=64, intermediate_size=64, shared_intermediate_size=64, num_local_experts=0,
    num_attention_heads=2, num_key_value_heads=2, mamba_n_heads=4, mamba_d_head=32,
    mamba_d_state=16, max_position_embeddings=512, initializer_range=0.3,
)  # fmt: skip
folder = tempfile.mkdtemp()
AutoModelForCausalLM.from_config(hybrid).save_pretrained(folder)
llm = LLM(
    folder, skip_tokenizer_init=True, dtype="bfloat16", enforce_eager=True, max_model_len=512,
    speculative_config={"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 2},
    enable_prefix_caching=False,
)  # fmt: skip
engine, sampling = llm.llm_engine, SamplingParams(max_tokens=2, detokenize=False)
core = engine.engine_core.engine_core
runner = core.model_executor.driver_worker.worker.model_runner
layers = runner.compilation_config.static_forward_context.values()
states = next(layer.kv_cache[1] for layer in layers if isinstance(layer, MambaMixer2))


def watch(*args, **named):
    step = schedule(*args, **named)
    tokens, drafts = step.num_scheduled_tokens, step.scheduled_spec_decode_tokens
    print(f"a step: {list(tokens.values())} tokens, drafts {list(drafts.values())}")
    return step


schedule, core.scheduler.schedule, found = core.scheduler.schedule, watch, []
for prompts in ([[7]], [list(range(40)), [7]]):
    for number, prompt in enumerate(prompts):
        engine.add_request(str(number), {"prompt_token_ids": prompt}, sampling)
        engine.step()
    block = runner.input_batch.block_table[0].get_numpy_array()[runner.input_batch.num_reqs - 1, 0]
    found.append(states[block].clone())
    engine.abort_request(list(runner.input_batch.req_ids), internal=True)
print("the same Mamba state after the prompt of one token:", torch.allclose(*found, 0.1, 0.01))
