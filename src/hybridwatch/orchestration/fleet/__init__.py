"""Many hosts, one queue: what is to be measured, where, and what came of it."""
