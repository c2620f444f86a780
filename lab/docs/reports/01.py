import os
import tempfile

from transformers import AutoConfig, AutoModelForCausalLM
from vllm import LLM, SamplingParams
from vllm.v1.attention.backends.mamba2_attn import Mamba2AttentionMetadataBuilder

os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_CPU_KVCACHE_SPACE="1")
hybrid = AutoConfig.for_model(
    "granitemoehybrid", layer_types=["mamba", "attention"], num_hidden_layers=2, vocab_size=256,
    hidden_size=64, intermediate_size=64, shared_intermediate_size=64, num_local_experts=0,
    num_attention_heads=2, num_key_value_heads=2, mamba_n_heads=4, mamba_d_head=32,
    mamba_d_state=16, max_position_embeddings=512,
)  # fmt: skip
folder = tempfile.mkdtemp()
AutoModelForCausalLM.from_config(hybrid).save_pretrained(folder)
llm = LLM(folder, skip_tokenizer_init=True, dtype="bfloat16", enforce_eager=True, max_model_len=512)
worker = llm.llm_engine.engine_core.engine_core.model_executor.driver_worker.worker
build = Mamba2AttentionMetadataBuilder.build


def watch(builder, *args, **named):
    metadata = build(builder, *args, **named)
    print(f"  {metadata.num_decodes} decodes, {metadata.num_prefills} prefills")
    return metadata


def run_dummy(when):
    print(f"a dummy run of four decodes {when}:")
    Mamba2AttentionMetadataBuilder.build = watch
    worker.model_runner._dummy_run(4, uniform_decode=True, force_attention=True)
    Mamba2AttentionMetadataBuilder.build = build


run_dummy("in a new engine")
prompts = [{"prompt_token_ids": [row] * 20} for row in range(4)]
llm.generate(prompts, SamplingParams(max_tokens=1, detokenize=False), use_tqdm=False)
run_dummy("after four answers of one token")
