"""A campaign: what a rented GPU is for, stage by stage, in order of worth.

A stage is a command with a limit of its own. What it measured is on disk before the next one
begins, so what the end of the rented time cuts off is lost alone.
"""
