"""The question of vllm#42430: how often a step passes the site, and how it is left unasked."""

from types import ModuleType

from hybridwatch_engine_lab.studies.is_prefilling_cost import SITE, _Unasked, per_step


def test_reads_of_the_site_are_told_per_step_and_no_others():
    told = {
        "reads_per_step": [3, 4, 3, 4],
        "sites": {
            f"vllm/v1/attention/backends/mamba_attn.py:{SITE}:454": 4,
            f"vllm/v1/attention/backends/mamba_attn.py:{SITE}:460": 2,
            f"vllm/v1/attention/backends/mamba_attn.py:{SITE}_more:454": 1,
            "vllm/v1/worker/gpu_model_runner.py:GPUModelRunner._sample:12": 8,
        },
    }
    assert per_step(told) == 1.5


def test_the_question_is_answered_without_a_read_and_all_else_is_torchs():
    torch, diff = ModuleType("torch"), object()
    vars(torch)["diff"] = diff
    unasked = _Unasked(torch)
    assert unasked.any(object()).item() is False
    assert unasked.diff is diff
