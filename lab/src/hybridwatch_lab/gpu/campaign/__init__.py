"""A campaign: the work of a rented GPU, stage by stage, the most valuable first.

A stage is a command with a limit of its own. What it measured is on disk before the next one
begins, so what the end of the rented time cuts off is lost alone.
"""
