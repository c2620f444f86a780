"""Stored runs in the light of each other: judged, in order, as histories, as controls, as alerts.

Reads the store and the index; shows nothing. What shows or decides something builds on it.
"""
