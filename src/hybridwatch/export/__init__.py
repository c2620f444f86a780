"""Runs in the forms of other tools: bytes by file name, nothing written here.

``points`` lays out what there is to tell, once; a module each for what the others want of it.
"""
