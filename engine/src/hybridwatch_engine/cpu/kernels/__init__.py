"""Kernels in PyTorch that vLLM's CPU builds lack: ``mamba_cache_mode="all"`` and speculation.

The compiled convolution takes no accepted counts and no columns of a block table, the state update
stores wrong states in its speculative form, the chunk scan returns the last states only, states
amid a prompt (0.32.0) are not stored, and the copies of ``align`` mode exist for GPUs alone. One
module a kernel, each with the semantics of its Triton kernel (``model_executor/layers/mamba/ops``,
``v1/worker/mamba_utils.py``). ``install`` patches vLLM to use them; ``fault`` is a command.
"""
