"""Every number of the index is the one that the record gives when it is read and judged now.

Derived rows move only together with ROWS_VERSION, or with the rules.
"""

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sqlalchemy.schema import CreateTable

from hybridwatch.analysis.gate import consequence
from hybridwatch.analysis.replay import RULES_VERSION
from hybridwatch.analysis.verdict import Report, find_line_verdict
from hybridwatch.database.moment import HISTORY
from hybridwatch.database.queries import Index
from hybridwatch.database.reading import list_stamped, read_rows, unpacked
from hybridwatch.database.schema import DERIVED, ROWS_VERSION
from hybridwatch.history.entry import Entry, load_entry, load_trials
from hybridwatch.records.store import list_records
from tests.shipped import RESULTS
from tests.unit.database import synthetic
from tests.unit.database.stores import add, opened
from tests.versions import Version, check_version


@pytest.fixture(scope="module", params=["committed", "made up"])
def store(request, tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("store")
    if request.param == "committed":
        shutil.copytree(RESULTS / "records", folder / "records")
    else:
        synthetic.write_store(folder, 6 * synthetic.VALUES_PER_RUN, seed=3)
    return folder


@pytest.fixture(scope="module")
def index(store) -> Index:
    """The index of the store; nothing here writes into it."""
    return opened(store).index


@pytest.fixture(scope="module")
def entries(store) -> Sequence[Entry]:
    """Every record, read and judged, oldest first."""
    return [entry for entry in map(load_entry, list_records(store)) if isinstance(entry, Entry)]


@pytest.fixture(scope="module")
def reports(store, entries):
    return {
        entry.path.relative_to(store).as_posix(): entry.report
        for entry in entries
        if len(entry.run.builds) == 2
    }


def differences(told: pd.DataFrame, reports: Mapping[str, Report]) -> list[str]:
    """Every place at which verdicts of an index differ from the reports of today."""
    found = []
    for record, report in reports.items():
        rows = told[told["record"] == record]
        if len(rows) != len(report.comparisons):
            found.append(f"{record}: {len(rows)} of {len(report.comparisons)}")
        for row, c in zip(rows.to_dict("records"), report.comparisons, strict=False):
            expected = {
                "scenario": report.scenario.id,
                "baseline": report.baseline.build.label,
                "contender": report.contender.build.label,
                "metric": c.metric.id,
                "statistic": c.statistic,
                "verdict": c.verdict.value,
                "effect": c.effect,
                "low": c.interval.low if c.interval else None,
                "high": c.interval.high if c.interval else None,
                "p_adjusted": c.p_adjusted,
                "p_holm": c.p_holm,
                "old": c.baseline.center if c.baseline else None,
                "new": c.contender.center if c.contender else None,
                "n_old": c.baseline.n if c.baseline else 0,
                "n_new": c.contender.n if c.contender else 0,
                "gate": consequence(c, report).value,
                "doubt": next(iter(c.doubts), ""),
                "doubts": len(c.doubts),
            }
            found += [
                f"{record} {c.metric.id}: {name}"
                for name, value in expected.items()
                if not (row[name] == value or (value is None and math.isnan(row[name])))
            ]
    return found


def test_verdicts_are_those_of_the_reports(index, reports):
    told = index.verdicts()
    assert len(told) > 30
    assert differences(told, reports) == []


@pytest.mark.parametrize("column", ["effect", "n_new", "verdict"])
def test_a_single_wrong_number_would_be_seen(index, reports, column):
    told = index.verdicts().copy()
    row = told.index[told["effect"].notna() & (told["effect"] != 0)][0]
    wrong = {"effect": told.loc[row, "effect"] * (1 + 1e-15) + 1e-300, "n_new": -1}
    told.loc[row, column] = wrong.get(column, "other")
    assert len(differences(told, reports)) == 1


def test_every_value_and_median_is_that_of_its_run(index, entries):
    series = cache(index.series)
    seen = 0
    for entry in entries:
        run = entry.run
        cell = run.scenario.id, run.testbed.id
        origin = run.harness.revision or "unknown", run.testbed.id
        for trials in load_trials(entry):
            found = series(*cell, trials.subject.metric.id, trials.subject.statistic)
            points = found.points[found.points["run"] == run.id]
            columns = ["build", "side", "nth", "value", "revision", "testbed"]
            assert list(points[columns].itertuples(index=False, name=None)) == [
                (side.build, side.side, nth, value, *origin)
                for side in trials.sides
                for nth, value in enumerate(side.values)
            ]
            levels = found.levels[found.levels["run"] == run.id][["build", "side", "value"]]
            assert list(levels.itertuples(index=False, name=None)) == [
                (side.build, side.side, side.median) for side in trials.sides
            ]
            seen += len(points)
    assert seen == index.counts["values"]


def test_runs_of_a_series_are_in_order_of_time(index):
    for cell in index.cells().itertuples(index=False):
        points = index.series(*(getattr(cell, name) for name in HISTORY)).points
        runs = points.drop_duplicates("run")
        assert runs["started_at"].is_monotonic_increasing
        assert runs["position"].tolist() == list(range(len(runs)))


def test_the_newest_run_of_each_comparison_is_the_one_that_stands(store, index, entries):
    latest = index.latest_verdicts()
    newest = {
        (entry.run.scenario.id, *(b.label for b in entry.run.builds), entry.run.testbed.id): entry
        for entry in entries
        if entry.report is not None
    }
    for entry in newest.values():
        assert entry.report is not None
        mine = latest[latest["record"] == entry.path.relative_to(store).as_posix()]
        assert find_line_verdict(entry.report).value in set(mine["verdict"])


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
    rows = rows_of(RESULTS) | rows_of(constructed(tmp_path))
    check_version(golden, GOLDEN, VERSION, columns | rows)


def test_another_number_of_a_row_demands_another_version(golden, tmp_path) -> None:
    rows = rows_of(constructed(tmp_path))
    for found in rows.values():
        found["measured"] = [one._replace(median=one.median + 1e-6) for one in found["measured"]]
    with pytest.raises(pytest.fail.Exception, match="derived rows moved: raise ROWS_VERSION"):
        check_version(golden, GOLDEN, VERSION, rows)
