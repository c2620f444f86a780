"""Mutants: faults switched on in a live engine, and the table of what kills them.

``runner`` measures, ``judging`` says what killed, ``table`` keeps, counts and shows.
"""
