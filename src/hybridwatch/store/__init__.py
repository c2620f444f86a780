"""Runs on disk: append-only, each written whole or not at all.

``layout`` says where a record lies, ``files`` writes, ``shelf`` reads and finds. What is inside a
file is ``record.codec``'s business.
"""

from hybridwatch.store.files import check_writable, write_run
from hybridwatch.store.layout import find_record, list_records
from hybridwatch.store.shelf import Broken, Shelf, Stored, read_all, read_run

__all__ = [
    "Broken",
    "Shelf",
    "Stored",
    "check_writable",
    "find_record",
    "list_records",
    "read_all",
    "read_run",
    "write_run",
]
