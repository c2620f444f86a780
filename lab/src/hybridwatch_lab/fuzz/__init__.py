"""A stateful fuzzer: stories of requests made up by a seed, played on a live engine.

``story`` is what a story is, ``machine`` makes stories up and makes them smaller, ``stage`` plays
them, ``judging`` says what was wrong, ``search`` goes on until something is, ``scenario_file`` and
``words`` tell it.
"""
