"""Mutants: faults that are switched on in a live engine, to see which of them the suite kills.

Tables in folders that the settings name describe them, and modules beside the tables wrap functions
of vLLM; here is what reads them, puts them in and counts.
"""
