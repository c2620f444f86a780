"""Engine builds, their environments, and an engine as a process that answers HTTP.

The engine runs in its own environment; nothing here imports vLLM.
"""
