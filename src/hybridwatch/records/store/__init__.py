"""Runs and verdicts on disk: append-only, each written whole or not at all."""

from hybridwatch.records.store.files import Intake as Intake
from hybridwatch.records.store.files import check_writable as check_writable
from hybridwatch.records.store.files import take_in as take_in
from hybridwatch.records.store.files import write_run as write_run
from hybridwatch.records.store.layout import find_record as find_record
from hybridwatch.records.store.layout import list_records as list_records
from hybridwatch.records.store.layout import results_folder as results_folder
from hybridwatch.records.store.reader import BASELINES as BASELINES
from hybridwatch.records.store.reader import Baseline as Baseline
from hybridwatch.records.store.reader import Broken as Broken
from hybridwatch.records.store.reader import RecordReader as RecordReader
from hybridwatch.records.store.reader import StoreContents as StoreContents
from hybridwatch.records.store.reader import Stored as Stored
from hybridwatch.records.store.reader import read_baselines as read_baselines
from hybridwatch.records.store.reader import read_bulk as read_bulk
from hybridwatch.records.store.reader import read_examples as read_examples
from hybridwatch.records.store.reader import read_file as read_file
from hybridwatch.records.store.reader import read_run as read_run
from hybridwatch.records.store.verdicts import StoredVerdict as StoredVerdict
from hybridwatch.records.store.verdicts import find_results as find_results
from hybridwatch.records.store.verdicts import find_verdict as find_verdict
from hybridwatch.records.store.verdicts import list_verdicts as list_verdicts
from hybridwatch.records.store.verdicts import read_side as read_side
from hybridwatch.records.store.verdicts import read_verdict as read_verdict
from hybridwatch.records.store.verdicts import refer as refer
from hybridwatch.records.store.verdicts import write_verdict as write_verdict
