"""Questions of the scenarios in ``scenarios/curated/``."""
