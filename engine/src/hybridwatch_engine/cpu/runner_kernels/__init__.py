"""The kernels of model runner V2 as operations on whole arrays, in place of Triton's interpreter.

The interpreter runs one program after the other, which makes a step of V2 on a CPU 10 to 170 times
as long as one of V1. The kernels here compute the same in NumPy, over the memory of a launch's
tensors. NumPy and not PyTorch, because a step makes hundreds of small operations, and because the
host-sync probe counts reads of tensors: those here are not the engine's.

Each stands in only for kernels whose source it was written from (``launch``): a kernel that a
release, a fix, a mutant or a developer has changed is interpreted, and so is a call that a stand-in
does not serve. ``studies.kernels`` compares each with the interpreter.
"""
