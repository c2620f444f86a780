"""What a segment holds, column by column; ``docs/record-index.md`` says what each means."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

Tables: TypeAlias = Mapping[str, pa.Table]
"""By name, one for each of ``SCHEMAS``."""

RECORDS: Final = "records"
RUNS: Final = "runs"
VALUES: Final = "values"
VERDICTS: Final = "verdicts"

ROWS_VERSION: Final = 2
"""Raise it when a record gives other rows although ``RULES_VERSION`` is the same: other columns,
other numbers of a trial, other words of a headline. Every index is then made again."""

_TEXT: Final = pa.dictionary(pa.int32(), pa.string())
"""Texts repeat a thousand times; each is kept once."""

_TIME: Final = pa.timestamp("us", tz="UTC")

SCHEMAS: Final[Mapping[str, pa.Schema]] = {
    RECORDS: pa.schema(
        {
            "record": pa.string(),
            "record_ns": pa.int64(),
            "record_size": pa.int64(),
            "bulk_ns": pa.int64(),
            "bulk_size": pa.int64(),
            "broken": pa.string(),
        }
    ),
    RUNS: pa.schema(
        {
            "record": _TEXT,
            "run": _TEXT,
            "side": pa.int8(),
            "scenario": _TEXT,
            "version": pa.int32(),
            "group": _TEXT,
            "testbed": _TEXT,
            "started_at": _TIME,
            "committed_at": _TIME,
            "build": _TEXT,
            "release": _TEXT,
            "accelerator": _TEXT,
            "fixes": _TEXT,
            "revision": _TEXT,
            "source": _TEXT,
            "failures": pa.int32(),
            "doubts": _TEXT,
            "headline": _TEXT,
            "trouble": _TEXT,
        }
    ),
    VALUES: pa.schema(
        {
            "record": _TEXT,
            "side": pa.int8(),
            "metric": _TEXT,
            "statistic": _TEXT,
            "trial": pa.int32(),
            "value": pa.float64(),
        }
    ),
    VERDICTS: pa.schema(
        {
            "record": _TEXT,
            "place": pa.int16(),
            "metric": _TEXT,
            "statistic": _TEXT,
            "verdict": _TEXT,
            "effect": pa.float64(),
            "low": pa.float64(),
            "high": pa.float64(),
            "p_adjusted": pa.float64(),
            "p_holm": pa.float64(),
            "old": pa.float64(),
            "new": pa.float64(),
            "n_old": pa.int32(),
            "n_new": pa.int32(),
            "gate": _TEXT,
            "doubt": _TEXT,
            "doubts": pa.int16(),
        }
    ),
}


def tables_of(rows: Mapping[str, list[dict[str, Any]]]) -> Tables:
    """Make tables of rows; a table without rows is empty."""
    return {
        name: pa.Table.from_pylist(rows.get(name, []), schema=schema)
        for name, schema in SCHEMAS.items()
    }


def joined(parts: Iterable[Tables]) -> Tables:
    """Put the tables of several segments below each other, with one dictionary for each column."""
    found = list(parts)
    return {
        name: pa.concat_tables(
            [schema.empty_table(), *(part[name] for part in found)]
        ).unify_dictionaries()
        for name, schema in SCHEMAS.items()
    }


def keeping(tables: Tables, records: frozenset[str]) -> Tables:
    """Leave out the rows of every record but some."""
    return {name: _keeping(table, records) for name, table in tables.items()}


def coded(table: pa.Table, column: str) -> tuple[npt.NDArray[np.int32], list[str]]:
    """Take a text column apart without making a text of every row.

    Returns:
        For each row an index into the texts, and the texts.
    """
    whole = table.unify_dictionaries()[column].combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # no rows, no chunk
        return np.empty(0, np.int32), []
    return whole.indices.to_numpy(zero_copy_only=False), whole.dictionary.to_pylist()


def frame_of(table: pa.Table) -> pd.DataFrame:
    """Give a table as plain columns: texts as texts, times aware, what is not there NaN or NaT."""
    plain = {
        field.name: column.cast(pa.string()) if field.type == _TEXT else column
        for field, column in zip(table.schema, table.columns, strict=True)
    }
    frame: pd.DataFrame = pa.table(plain).to_pandas()
    return frame


def _keeping(table: pa.Table, records: frozenset[str]) -> pa.Table:
    if table.schema.field("record").type == pa.string():
        mask = [record in records for record in table["record"].to_pylist()]
        return table.filter(pa.array(mask, pa.bool_()))
    codes, texts = coded(table, "record")
    wanted = np.array([text in records for text in texts], dtype=np.bool_)
    return table.filter(pa.array(wanted[codes] if len(codes) else [], pa.bool_()))
