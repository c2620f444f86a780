"""Stored runs compared with each other: verdicts, histories, controls and alerts.

Reads the store and the index; shows nothing. What shows or decides something builds on it.
"""
