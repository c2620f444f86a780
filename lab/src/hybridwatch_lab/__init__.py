"""What measures hybridwatch itself, and what its maintainers run.

``commands`` and ``screens`` are added to hybridwatch's own by entry points; what runs inside an
engine lies in ``engine``, which goes onto the path of the engine's Python and not onto ours.
"""
