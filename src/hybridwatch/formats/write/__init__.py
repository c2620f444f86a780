"""Runs in the forms of other tools: bytes by file name, nothing written here.

``points`` lays out what a run says, once, for the forms that are lists of points.
"""
