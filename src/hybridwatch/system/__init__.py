"""The machine below: processes, files, locks, terminals, and where things lie.

Engines, load clients and lm-eval run under a guard and end with us. ``guarded`` starts them,
``guard`` is the small program that stays between them and us; ``stopping`` makes sure that a signal
ends them all, and us. ``nvidia`` asks the driver of this
machine's GPUs. ``home`` says where scenarios, models and builds lie.
"""
