"""Asks a running completions server for what must hold for every right engine.

``client`` speaks to the server, ``comparison`` holds two answers to one request against each other,
``relations`` has what is asked, ``plan`` asks it within a time, ``result`` is what comes of it. The
model is unknown and nothing is installed on the server: each answer is compared with another
answer of the same server.
"""
