"""The kernels of model runner V2 as operations on whole arrays, in place of Triton's interpreter.

The interpreter runs one program after the other, which makes a step of V2 on a CPU 10 to 170 times
as long as one of V1. The kernels here do in NumPy, over the memory of the tensors that a launch is
given, what the Triton kernels do there. They are in NumPy and not in PyTorch because a step makes
hundreds of small operations, and because the host-sync probe counts reads of tensors: those here
are not the engine's.

Each stands in for kernels whose source it was written from, and for no others (``launch``): a
kernel that a release, a fix, a mutant or a developer has changed is interpreted, and so is a call
that a stand-in does not serve. ``studies.kernels`` holds each against the interpreter.
"""
