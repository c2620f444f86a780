"""Scenarios: what is run on an engine, what is measured, and what must hold.

``scenario`` has the types and the rules between fields, ``load`` reads TOML files, ``validation``
words what is wrong with a file. Nothing here starts an engine.
"""
