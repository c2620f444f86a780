"""Half an hour on a machine with a GPU: the pack for it, its campaign, and the findings."""
