"""Measuring: from a scenario and two builds to a run.

``plan`` says which trials in which order, ``engine_pool`` keeps the engines, ``phase`` measures one
trial, ``session`` does it all and returns a ``Run``. Nothing here writes results or judges.
"""
