"""Lists of runs, and the page of a run with its curves."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hybridwatch.analysis.policy import Policy
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.database.queries import open_index
from hybridwatch.errors import RecordError
from hybridwatch.history.checkout import Checkout
from hybridwatch.history.runs import runs_by_id
from hybridwatch.pages.address import Address, address
from hybridwatch.pages.document import (
    Chart,
    Command,
    Document,
    Filters,
    Link,
    Notice,
    Paragraph,
    Section,
    Table,
    build_cell,
    pieces,
    plain,
)
from hybridwatch.pages.html import csv_of_table, static_page
from hybridwatch.pages.screens import SCREENS, ScreenSource, open_view
from hybridwatch.records.store import write_run
from tests.curves import a_swept_run, even, tilted
from tests.dashboard.parity import words_of
from tests.store_builders import REGRESSED, STARTED, TESTBED, Plan, as_version_1, run, scenario
from tests.unit.pages.suite_stores import of_kind, one_side, table

NOW = STARTED + timedelta(hours=5)
CURVES_NOW = datetime(2026, 11, 22, tzinfo=UTC)
TITLE = "Throughput against interactivity"


def view(store: Path, screen: str, **parameters: str | list[str] | int) -> Document:
    return open_view(ScreenSource(store, open_index(store), NOW), address(screen, **parameters))


def column(table: Table, name: str) -> list[str]:
    place = [column.name for column in table.columns].index(name)
    return [plain(build_cell(row[place]).content) for row in table.rows]


def links(table: Table) -> Iterator[Address]:
    for row in table.rows:
        for piece in pieces(build_cell(row[1]).content):
            if isinstance(piece, Link) and isinstance(piece.to, Address):
                yield piece.to


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Oldest first: a regression, another scenario elsewhere, a run of one build."""
    write_run(tmp_path, run(REGRESSED))
    other = replace(TESTBED, id="xeon-8c", cores=8)
    later = STARTED + timedelta(hours=1)
    write_run(tmp_path, run(Plan(started_at=later, testbed=other, scenario=scenario("smoke/b"))))
    last = run(Plan(started_at=STARTED + timedelta(hours=2), scenario=scenario("smoke/c")))
    write_run(tmp_path, one_side(last))
    return tmp_path


def test_runs_are_listed_newest_first_with_their_worst_verdict(store: Path) -> None:
    runs = of_kind(view(store, "runs"), Table)[0]
    assert column(runs, "scenario, builds") == ["smoke/c", "smoke/b", "smoke/padded-graph-rows"]
    assert column(runs, "verdict")[0] == "equivalent"
    assert column(runs, "verdict")[2] == "control"
    assert column(runs, "measured, run") == ["3 h ago", "4 h ago", "5 h ago"]


def test_a_run_says_what_tokens_cost_where_the_policy_has_a_price(store: Path) -> None:
    to, index = address("run", run=run(REGRESSED).id), open_index(store)
    assert "per hour" not in str(words_of(open_view(ScreenSource(store, index, NOW), to)))
    priced = Checkout(policy=Policy(price_per_hour=2.5))
    document = open_view(ScreenSource(store, index, NOW, checkout=lambda: priced), to)
    assert "At 2.5 per hour a million output tokens cost" in str(words_of(document))


def test_runs_are_filtered_by_scenario_build_and_testbed(store: Path) -> None:
    for parameters, wanted in (
        ({"scenario": ["smoke/b", "smoke/c"]}, ["smoke/c", "smoke/b"]),
        ({"testbed": ["xeon-8c"]}, ["smoke/b"]),
        ({"build": ["cpu-0.27.1~padded-rows-prefilling"]}, ["smoke/padded-graph-rows"]),
    ):
        runs = of_kind(view(store, "runs", **parameters), Table)[0]
        assert column(runs, "scenario, builds") == wanted
    nothing = view(store, "runs", testbed="xeon-8c", scenario="smoke/c")
    assert [table.caption for table in of_kind(nothing, Table)] == ["Testbeds"]


def test_every_link_in_a_list_opens_what_it_names_without_complaint(store: Path) -> None:
    runs, testbeds = of_kind(view(store, "runs"), Table)
    followed = [*links(runs)]
    assert len(followed) == 3
    for to in followed:
        opened = open_view(ScreenSource(store, open_index(store), NOW), to)
        assert opened.complaints == ()
        assert opened.address == to
    assert "xeon-8c" in column(testbeds, "testbed")


def test_testbeds_say_in_what_they_differ(store: Path) -> None:
    [told] = [s for s in view(store, "runs").blocks if isinstance(s, Section)]
    [paragraph] = [block for block in told.blocks if isinstance(block, Paragraph)]
    assert plain(paragraph.line).startswith("They differ in cores.")


def test_gpus_of_a_testbed_are_reported_by_kind(tmp_path: Path) -> None:
    whole = replace(
        TESTBED,
        id="nvidia-h200-x3",
        gpus=("NVIDIA H200", "NVIDIA H200", "NVIDIA L4"),
        driver="570.1",
        cuda="12.8",
        gpu_memory_bytes=(141 * 1024**3, 141 * 1024**3, 24 * 1024**3),
        gpu_power_limits_w=(700.0, 700.0, 72.0),
    )
    scant = replace(whole, id="nvidia-h200-x3-old", gpu_memory_bytes=(), gpu_power_limits_w=())
    for seed, testbed in enumerate((scant, whole, TESTBED)):
        write_run(tmp_path, run(Plan(seed=seed, testbed=testbed)))
    _, testbeds = of_kind(view(tmp_path, "runs"), Table)
    told = dict(zip(column(testbeds, "testbed"), column(testbeds, "GPUs"), strict=True))
    assert told == {
        "nvidia-h200-x3": "2 x NVIDIA H200, 141 GiB, 700 W; NVIDIA L4, 24 GiB, 72 W",
        "nvidia-h200-x3-old": "2 x NVIDIA H200; NVIDIA L4",
        TESTBED.id: "none",
    }


def test_long_lists_have_pages_that_keep_the_filter(store, monkeypatch) -> None:
    monkeypatch.setattr("hybridwatch.pages.query.PAGE_ROWS", 1)
    wanted = ["smoke/b", "smoke/c"]
    first = view(store, "runs", scenario=wanted)
    [pager] = [
        block.line
        for block in first.blocks
        if isinstance(block, Paragraph) and "Page 1 of 2" in plain(block.line)
    ]
    [older] = [piece for piece in pieces(pager) if isinstance(piece, Link)]
    assert older.to == address("runs", scenario=wanted, page=2)
    second = view(store, "runs", scenario=wanted, page=2)
    assert column(of_kind(second, Table)[0], "scenario, builds") == ["smoke/b"]
    assert view(store, "runs", page=9).complaints


def test_no_other_run_is_shown_for_one_that_is_not_there(store: Path) -> None:
    document = view(store, "run", run="no-such-run", metric="ttft p99")
    assert document.title == "No such run"
    assert document.complaints == ("The link names run 'no-such-run', which is not in this store.",)
    assert document.address == address("run", run="no-such-run", metric="ttft p99")
    (way,) = document.blocks
    assert isinstance(way, Paragraph)
    assert plain(way.line) == "See 3 runs of this store."
    page = static_page(document, NOW)
    assert "No such run" in page
    assert "no-such-run" in page


def test_the_beginning_of_an_id_is_enough_where_one_run_has_it(store: Path) -> None:
    for run_id in sorted(runs_by_id(open_index(store))):
        document = view(store, "run", run=run_id[:-1])
        assert document.complaints == ()
        assert document.address.values("run") == (run_id,)


def test_runs_whose_ids_begin_alike_are_all_named(store: Path) -> None:
    first = run(REGRESSED)
    twin = replace(first, id=f"{first.id[:4]}0000", started_at=STARTED - timedelta(days=1))
    write_run(store, twin)
    document = view(store, "run", run=first.id[:4])
    assert document.title == "No such run"
    lines = [block.line for block in document.blocks if isinstance(block, Paragraph)]
    assert plain(lines[0]) == "2 runs have an id that begins so:"
    named = [line.to for line in lines if isinstance(line, Link)]
    assert named == [address("run", run=one) for one in (first.id, twin.id)]


def test_a_run_opens_on_its_worst_metric_and_can_show_all(store: Path) -> None:
    asked = run(REGRESSED).id
    document = view(store, "run", run=asked)
    assert [chart.title for chart in of_kind(document, Chart)] == [
        "contract.padded_rows_prefilling"
    ]
    assert document.address == address("run", run=asked)
    assert len(of_kind(view(store, "run", run=asked, metric="all"), Chart)) == 11
    table = of_kind(document, Table)[0]
    assert column(table, "verdict")[0] == Verdict.REGRESSION.value
    assert "regression,contract.padded_rows_prefilling,0.0,41.0,41.0" in csv_of_table(table)


def test_a_run_whose_record_has_no_digest_says_so(store: Path) -> None:
    asked = run(REGRESSED).id
    assert not plain(view(store, "run", run=asked).lead).endswith("no digest")
    as_version_1(next(path for path in store.rglob("*.json") if asked in path.name))
    assert plain(view(store, "run", run=asked).lead).endswith(f"run {asked} · no digest")


def test_a_run_without_a_wish_is_the_newest_and_pinned(store: Path) -> None:
    document = view(store, "run")
    assert document.title == "smoke/c"
    assert document.address.values("run")
    assert not of_kind(document, Notice)
    assert any("make run" not in command.text for command in of_kind(document, Command))


def test_a_run_can_be_changed_for_another_of_its_scenario(store: Path) -> None:
    again = run(replace(REGRESSED, seed=8, started_at=STARTED + timedelta(hours=3)))
    write_run(store, again)
    [choice, _] = [c for f in of_kind(view(store, "run", run=again.id), Filters) for c in f.choices]
    assert list(choice.options) == [again.id, run(REGRESSED).id]


def test_a_record_that_broke_since_is_named_loudly(store: Path) -> None:
    index = open_index(store)
    path = next(path for path in store.rglob("*.json") if run(REGRESSED).id in path.name)
    path.write_bytes(b"{")
    document = open_view(ScreenSource(store, index, NOW), address("run", run=run(REGRESSED).id))
    [notice] = of_kind(document, Notice)
    assert not notice.quiet
    assert path.name in plain(notice.lines[0])


@pytest.mark.parametrize("screen", SCREENS)
def test_trouble_meant_for_people_becomes_a_notice(screen, tmp_path, monkeypatch) -> None:
    def fail(*_: object) -> Document:
        raise RecordError("the disk is on fire")

    function = SCREENS[screen].show or f"hybridwatch.pages.screens.{screen}:show"
    monkeypatch.setattr(function.replace(":", "."), fail)
    [notice] = of_kind(view(tmp_path, screen), Notice)
    assert notice.lines == ("the disk is on fire",)


def test_a_run_of_one_build_says_what_it_is_good_for(tmp_path: Path) -> None:
    write_run(tmp_path, one_side(run()))
    (said,) = column(of_kind(view(tmp_path, "runs"), Table)[0], "what")
    assert said.startswith("One build alone")


@pytest.fixture
def show(tmp_path):
    """Show a page of a run that was stored."""

    def of(run, page):
        write_run(tmp_path, run)
        source = ScreenSource(tmp_path, open_index(tmp_path), CURVES_NOW)
        wanted = {"run": run.id} if page == "run" else {"contender": f"{run.id}#1"}
        return open_view(source, address(page, **wanted))

    return of


def chart_of(document):
    return next((one for one in of_kind(document, Chart) if one.title == TITLE), None)


def loads_of(document):
    return table(document, "Every load")


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
    document = show(one_side(a_swept_run(even, tilted)), "run")
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
