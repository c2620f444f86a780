"""Runs and verdicts on disk: append-only, each written whole or not at all."""

from hybridwatch.records.store.files import Intake, check_writable, take_in, write_run
from hybridwatch.records.store.layout import find_record, list_records, results_folder
from hybridwatch.records.store.reader import (
    BASELINES,
    Baseline,
    Broken,
    RecordReader,
    StoreContents,
    Stored,
    read_baselines,
    read_bulk,
    read_examples,
    read_file,
    read_run,
)
from hybridwatch.records.store.verdicts import (
    SideRef,
    StoredVerdict,
    find_results,
    find_verdict,
    list_verdicts,
    read_side,
    read_verdict,
    refer,
    write_verdict,
)

__all__ = [
    "BASELINES",
    "Baseline",
    "Broken",
    "Intake",
    "RecordReader",
    "SideRef",
    "StoreContents",
    "Stored",
    "StoredVerdict",
    "check_writable",
    "find_record",
    "find_results",
    "find_verdict",
    "list_records",
    "list_verdicts",
    "read_baselines",
    "read_bulk",
    "read_examples",
    "read_file",
    "read_run",
    "read_side",
    "read_verdict",
    "refer",
    "results_folder",
    "take_in",
    "write_run",
    "write_verdict",
]
