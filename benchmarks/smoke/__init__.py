"""Questions of the scenarios in ``scenarios/smoke/``."""
