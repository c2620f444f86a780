"""Questions of the scenarios in ``scenarios/reported/``."""
