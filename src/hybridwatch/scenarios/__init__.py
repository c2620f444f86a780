"""Scenarios: what is run on an engine, what is measured, and what must hold."""
