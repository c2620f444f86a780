"""Where in an ordered list something changed: what to measure next, and when to stop.

Positions count from 0, the good end, to the bad end. All before the change are as the good end,
the change and all behind it as the bad one. Pure functions: their callers measure. ``exact`` is for
answers without noise, ``belief`` and ``timed`` for times.
"""
