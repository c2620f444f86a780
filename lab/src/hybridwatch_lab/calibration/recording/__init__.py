"""A noisy machine, made on purpose, and sessions of known truth recorded on it.

``neighbour`` loads the machine in bursts while a command runs; ``recorder`` measures one engine
beside itself and beside a planted fault. What came out lies in ``calibration/histories``, where the
rules are held against it.
"""
