"""A stateful fuzzer: cases of requests made by a seed, played on a live engine.

``case`` is what a case is and how a scenario file says it, ``engine_target`` plays cases and says
what was wrong, ``search`` makes them until something is, and makes that one smaller.
"""
