"""What every screen asks of a store, answered without reading a record again.

A store of records is made to be kept, not to be queried: a history of one metric would read every
record. The database keeps what the records gave (runs, one number per trial, verdicts) and, apart
from that, what people decided. ``schema`` has the tables, ``connection`` knows SQLite and
PostgreSQL, ``reading`` goes from a record to rows, ``writing`` brings the tables in line with the
records, ``queries`` answers, ``decisions`` keeps what people did.
"""
