"""Which release, commit, file or fix changed what a scenario measures."""
