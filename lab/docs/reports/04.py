import os
import tempfile

from transformers import AutoConfig, AutoModelForCausalLM
from vllm import LLM, SamplingParams
from vllm.model_executor.layers.mamba.mamba_mixer2 import MambaMixer2

os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_CPU_KVCACHE_SPACE="1")


def save(kind, **others):
    folder, heads = tempfile.mkdtemp(), {"num_attention_heads": 2, "num_key_value_heads": 2}
    sizes = {"vocab_size": 256, "hidden_size": 64, "intermediate_size": 64}
    config = AutoConfig.for_model(kind, **heads, **sizes, **others)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return folder


hybrid = save(
    "granitemoehybrid", layer_types=["mamba", "attention"], num_hidden_layers=2, mamba_d_head=32,
    mamba_n_heads=4, mamba_d_state=16, num_local_experts=0, shared_intermediate_size=64,
)  # fmt: skip
llm = LLM(
    hybrid, skip_tokenizer_init=True, dtype="bfloat16", enforce_eager=True, max_model_len=512,
    enable_prefix_caching=False, speculative_config={
        "method": "draft_model", "num_speculative_tokens": 3,
        "model": save("llama", num_hidden_layers=1),
    },
)  # fmt: skip
runner = llm.llm_engine.engine_core.engine_core.model_executor.driver_worker.worker.model_runner
layers = runner.compilation_config.static_forward_context.values()
states = next(layer.kv_cache[1] for layer in layers if isinstance(layer, MambaMixer2))


def watch(*args, **named):
    before, blocks = states.clone(), runner.input_batch.block_table[0].get_numpy_array()[0, :4]
    drafts = propose(*args, **named)
    changed = (states != before).flatten(1).any(1).nonzero().flatten().tolist()
    print(f"Mamba states of the request: blocks {blocks}; changed by the drafter: {changed}")
    return drafts


propose, runner.drafter.propose = runner.drafter.propose, watch
sampling = SamplingParams(temperature=0, max_tokens=2, ignore_eos=True, detokenize=False)
llm.generate({"prompt_token_ids": list(range(20))}, sampling, use_tqdm=False)
