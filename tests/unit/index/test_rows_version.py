"""Rows of the index move only together with ROWS_VERSION, or with the rules."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybridwatch.analysis.rules_version import RULES_VERSION
from hybridwatch.analysis.verdict import Report
from hybridwatch.index.reading import Batch
from hybridwatch.index.stamps import list_stamped
from hybridwatch.index.tables import RECORDS, ROWS_VERSION, SCHEMAS, tables_of
from hybridwatch.report.sentence import headline
from tests.unit.index.stores import add
from tests.versions import Version, check_version

COMMITTED = Path(__file__).parents[3] / "results"
GOLDEN = "rules/rows.json"
VERSION = Version("ROWS_VERSION", f"{ROWS_VERSION} of rules {RULES_VERSION}", "rows of the index")


def constructed(results: Path) -> Path:
    add(results, 1)
    add(results, 2, slower=1.5)
    (results / "records" / "epyc-4c" / "broken.json").write_text("{}")
    return results


def rows_of(results: Path, say: Callable[[Report], str] = headline) -> dict[str, Any]:
    """By record, what the index keeps of it besides its stamp."""
    found: dict[str, Any] = {}
    for name, listed in list_stamped(results).items():
        batch = Batch()
        batch.add(name, listed, say)
        kept = {table: rows.to_pylist() for table, rows in tables_of(batch.rows).items()}
        found[name] = kept | {RECORDS: [row["broken"] for row in kept[RECORDS]]}
    return found


def test_rows_move_only_together_with_their_version(golden, tmp_path) -> None:
    columns = {"columns": {table: str(schema) for table, schema in SCHEMAS.items()}}
    rows = rows_of(COMMITTED) | rows_of(constructed(tmp_path))
    check_version(golden, GOLDEN, VERSION, columns | rows)


def test_another_word_of_a_headline_demands_another_version(golden, tmp_path) -> None:
    rows = rows_of(constructed(tmp_path), lambda report: headline(report).upper())
    with pytest.raises(pytest.fail.Exception, match="rows of the index moved: raise ROWS_VERSION"):
        check_version(golden, GOLDEN, VERSION, rows)


def test_another_number_of_a_row_demands_another_version(golden, tmp_path) -> None:
    rows = rows_of(constructed(tmp_path))
    for tables in rows.values():
        for row in tables["values"]:
            row["value"] += 1e-6
    with pytest.raises(pytest.fail.Exception, match="rows of the index moved: raise ROWS_VERSION"):
        check_version(golden, GOLDEN, VERSION, rows)
