"""Many hosts, one queue: what is to be measured, where, and what came of it.

``matrix`` reads what somebody wants, ``job`` is one measurement of it, ``ledger`` keeps all of them
in the database. ``placing`` and ``proof`` decide, and do nothing; ``draining`` does, on a
``cluster``: this machine (``local_cluster``) or many (``ray_cluster``, which alone knows Ray). What
a host does is in ``measuring`` and ``probing``.
"""
