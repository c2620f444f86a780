"""What every screen asks of a store, answered without reading a record again.

A store of records is made to be kept, not to be queried: a history of one metric would read every
record. The index keeps what the records gave (runs, one number per trial, verdicts) in Parquet
files under ``<results>/.index``. It holds nothing of its own: deleting it costs the time to read
the records again. ``reading`` goes from a record to rows, ``segments`` knows the disk, ``update``
brings both together, ``queries`` answers.
"""

from hybridwatch.index.queries import Index, Series
from hybridwatch.index.update import open_index

__all__ = ["Index", "Series", "open_index"]
