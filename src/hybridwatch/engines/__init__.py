"""Engine builds, their environments, and an engine as a process; nothing here imports vLLM."""
