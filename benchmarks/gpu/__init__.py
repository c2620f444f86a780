"""Questions of the scenarios in ``scenarios/gpu/``; skipped where the build is none for GPUs."""
