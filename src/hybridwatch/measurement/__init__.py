"""Measuring, from a scenario and two builds to a ``Run``; nothing here writes or judges."""
