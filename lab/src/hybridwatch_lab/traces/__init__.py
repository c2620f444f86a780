"""The trace that is shipped, and how well a trace is replayed."""
