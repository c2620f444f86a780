"""asv suites: a class per question, each names a scenario; ``hybridwatch.cli.suite`` measures."""
