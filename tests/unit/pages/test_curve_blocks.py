"""The section about the curves of a sweep, on the pages of a run and of a comparison."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hybridwatch.database.queries import open_index
from hybridwatch.pages.address import address
from hybridwatch.pages.document import Chart, Table
from hybridwatch.pages.screens import ScreenSource, open_view
from hybridwatch.records.store import write_run
from tests.curves import a_swept_run, even, tilted
from tests.dashboard.parity import blocks_of, words_of

NOW = datetime(2026, 11, 22, tzinfo=UTC)
TITLE = "Throughput against interactivity"


@pytest.fixture
def show(tmp_path):
    """Show a page of a run that was stored."""

    def of(run, page):
        write_run(tmp_path, run)
        source = ScreenSource(tmp_path, open_index(tmp_path), NOW)
        wanted = {"run": run.id} if page == "run" else {"contender": f"{run.id}#1"}
        return open_view(source, address(page, **wanted))

    return of


def alone(run):
    trials = tuple(trial for trial in run.trials if trial.side == 0)
    numbered = tuple(replace(trial, index=at) for at, trial in enumerate(trials))
    return replace(run, builds=run.builds[:1], trials=numbered)


def chart_of(document):
    found = (
        one for one in blocks_of(document.blocks) if isinstance(one, Chart) and one.title == TITLE
    )
    return next(found, None)


def loads_of(document):
    (table,) = (
        one
        for one in blocks_of(document.blocks)
        if isinstance(one, Table) and one.caption == "Every load"
    )
    return table


@pytest.mark.parametrize("page", ["run", "compare"])
def test_both_curves_are_drawn_and_every_load_stands_in_a_table(show, page):
    document = show(a_swept_run(even, tilted), page)
    said = " ".join(words_of(document))
    assert "The curves cross between" in said
    assert "Goodput counts the requests with TTFT up to 100 ms and TPOT up to 30.0 ms." in said
    chart = chart_of(document)
    assert len(chart.data["build"]) == 8
    assert chart.data["max_concurrency"][:4] == [1.0, 2.0, 4.0, 8.0]
    table = loads_of(document)
    names = [column.name for column in table.columns]
    assert names[:4] == ["requests in flight", "side", "tok/s per user", "tok/s of the engine"]
    assert len(table.rows) == 8


def test_a_run_of_one_build_has_its_curve_alone(show):
    document = show(alone(a_swept_run(even, tilted)), "run")
    assert set(chart_of(document).data["build"]) == {"cpu-0.27.1"}
    assert "cross" not in " ".join(words_of(document))


def test_energy_has_a_column_only_where_a_driver_counts_it(show):
    told = loads_of(show(a_swept_run(even, tilted, joules=2.0), "run"))
    assert told.columns[-1].name == "J per token"
    assert told.rows[0][-1].content == "2"


def test_a_run_without_a_sweep_has_no_such_section(show):
    run = a_swept_run(even, tilted)
    bare = replace(run, trials=tuple(replace(trial, curve=None) for trial in run.trials))
    assert chart_of(show(bare, "run")) is None
