"""Many hosts, one queue: what is to be measured, where, and what came of it.

``matrix`` reads what is wanted, ``job`` is one measurement of it, ``job_queue`` keeps all of them
in the database. ``placing`` and ``health`` decide, and do nothing; ``driver`` does, on a
``cluster``: this machine (``local_cluster``) or many (``ray_cluster``, which alone knows Ray). What
a host does is in ``measuring`` and ``probing``.
"""
