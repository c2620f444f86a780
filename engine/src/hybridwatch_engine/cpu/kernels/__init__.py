"""What the compiled CPU kernels of vLLM leave out: ``mamba_cache_mode="all"`` and speculation.

The convolution takes no accepted counts and no columns of a block table, the state update stores
wrong states in its speculative form, the chunk scan gives the last states only, states amid a
prompt (0.32.0) are not stored, and the copies of ``align`` mode exist for GPUs alone. Here they are
in PyTorch, one module a kernel, each doing what the Triton kernel of the same purpose does
(``model_executor/layers/mamba/ops``, ``v1/worker/mamba_utils.py``). ``install`` puts them in;
``fault`` is a command.
"""
