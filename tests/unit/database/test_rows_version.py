"""Derived rows move only together with ROWS_VERSION, or with the rules."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.schema import CreateTable

from hybridwatch.analysis.rules_version import RULES_VERSION
from hybridwatch.database.reading import list_stamped, read_rows, unpacked
from hybridwatch.database.schema import DERIVED, ROWS_VERSION
from tests.unit.database.stores import add
from tests.versions import Version, check_version

COMMITTED = Path(__file__).parents[3] / "results"
GOLDEN = "rules/rows.json"
VERSION = Version("ROWS_VERSION", f"{ROWS_VERSION} of rules {RULES_VERSION}", "derived rows")


def constructed(results: Path) -> Path:
    add(results, 1)
    add(results, 2, slower=1.5)
    (results / "records" / "epyc-4c" / "broken.json").write_text("{}")
    return results


def rows_of(results: Path) -> dict[str, Any]:
    """By record, what the database keeps of it besides its stamp."""
    found: dict[str, Any] = {}
    for name, listed in list_stamped(results).items():
        rows = asdict(read_rows(name, listed))
        report = json.loads(unpacked(rows["report"])) if rows["report"] else None
        found[name] = rows | {"record": rows["record"]["broken"], "report": report}
    return found


def test_rows_move_only_together_with_their_version(golden, tmp_path) -> None:
    columns = {"columns": {table.name: str(CreateTable(table)) for table in DERIVED}}
    rows = rows_of(COMMITTED) | rows_of(constructed(tmp_path))
    check_version(golden, GOLDEN, VERSION, columns | rows)


def test_another_number_of_a_row_demands_another_version(golden, tmp_path) -> None:
    rows = rows_of(constructed(tmp_path))
    for found in rows.values():
        found["measured"] = [one._replace(median=one.median + 1e-6) for one in found["measured"]]
    with pytest.raises(pytest.fail.Exception, match="derived rows moved: raise ROWS_VERSION"):
        check_version(golden, GOLDEN, VERSION, rows)
