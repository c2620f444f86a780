"""A stateful fuzzer: cases of requests made by a seed, played on a live engine.

``case`` is what a case is, ``machine`` makes cases and makes them smaller, ``engine_target`` plays
them, ``judging`` says what was wrong, ``search`` goes on until something is, ``scenario_file`` and
``words`` show it.
"""
