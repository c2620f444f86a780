"""``python -m hybridwatch_engine_lab.studies.kernels``: the kernels against plain loops and Triton.

Random cases are calls of vLLM's own functions, made with the kernels installed. Every output and
every stored state is compared with a loop over tokens in 64 bits that was written for this, and on
a sample of the cases with the Triton kernel itself, run by Triton's interpreter.
"""
