"""A fleet: many hosts that measure the jobs of one queue."""
