"""``python -m hybridwatch`` is ``hybridwatch``."""

from hybridwatch.cli.main import main

main()
