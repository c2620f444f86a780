"""Mutants: faults that are switched on in a live engine, to see which of them the suite kills.

Tables in folders that the settings name describe them, and modules next to the tables wrap
functions of vLLM. This package reads them, switches them and counts their calls.
"""
