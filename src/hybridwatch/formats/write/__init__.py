"""Runs in the forms of other tools: bytes by file name, nothing written here.

``points`` lays out what a run says, once; a module each for what the others want of it.
"""
