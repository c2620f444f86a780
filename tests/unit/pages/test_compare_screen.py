"""Comparing any two sides: what is chosen, what is said, and what is refused."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.numbers import name_of
from hybridwatch.cli.compare import compare_command as command
from hybridwatch.database.queries import open_index
from hybridwatch.metrics import Kind
from hybridwatch.pages.address import address, builds_address
from hybridwatch.pages.document import (
    Chart,
    Code,
    Command,
    Document,
    Facts,
    Folded,
    Link,
    Notice,
    Table,
    build_cell,
    pieces,
    plain,
)
from hybridwatch.pages.screens import ScreenSource, open_view
from hybridwatch.records.store import list_records, read_run, write_run
from hybridwatch.reports.figures.forest import build_rows, compute_reach, figure_forest
from hybridwatch.reports.sentence import headline
from tests.command_line import run_verb
from tests.curves import a_swept_run, even, tilted
from tests.dashboard.parity import words_of
from tests.store_builders import (
    REGRESSED,
    STARTED,
    TESTBED,
    Plan,
    records_of_two_sides,
    run,
    scenario,
)
from tests.unit.pages.suite_stores import UPGRADE, choices, of_kind, one_side, put

NOW = datetime(2026, 11, 22, tzinfo=UTC)
WORSE = replace(REGRESSED, bad_contender=False)
"""A run that nobody meant to be bad."""
COMMITTED = Path(__file__).parents[3] / "results"
HOSTILE = "<img src=x onerror=alert(1)> [x](javascript:alert(1)) `=1+1`"


def view(results: Path, **parameters: str) -> Document:
    source = ScreenSource(results, open_index(results), NOW)
    return open_view(source, address("compare", **parameters))


def compared(document: Document) -> list[list[str]]:
    """Every comparison: what changed, and what did not."""
    captions = {one.caption for one in of_kind(document, Table)}
    wanted = [one for one in ("What changed", "What did not change") if one in captions]
    return [row for caption in wanted for row in table(document, caption)]


def table(document: Document, caption: str) -> list[list[str]]:
    (found,) = (t for t in of_kind(document, Table) if t.caption == caption)
    return [[plain(build_cell(cell).content) for cell in row] for row in found.rows]


def test_an_empty_store_says_what_to_do(tmp_path):
    document = view(tmp_path)
    assert [c.text for c in of_kind(document, Command)] == ["make run"]
    assert not document.complaints


def test_the_newest_run_with_two_sides_is_compared_first(tmp_path):
    write_run(tmp_path, run(WORSE))
    later = Plan(started_at=STARTED + timedelta(hours=1), scenario=scenario("smoke/alone"), seed=5)
    write_run(tmp_path, one_side(run(later)))
    document = view(tmp_path)
    both = run(WORSE)
    assert document.address == address(
        "compare",
        scenario="smoke/padded-graph-rows",
        contender=f"{both.id}#1",
        baseline=f"{both.id}#0",
    )
    assert choices(document)["scenario"].options.keys() == {
        "smoke/padded-graph-rows",
        "smoke/alone",
        "all",
    }
    assert headline(build_report(both)) in words_of(document)
    assert of_kind(document, Command)[0].text == f"hybridwatch compare {both.id}"


def test_an_engine_that_is_bad_on_purpose_is_compared_only_when_asked_for(tmp_path):
    healthy = one_side(run(Plan(started_at=STARTED - timedelta(hours=1), seed=5)))
    control = run(REGRESSED)
    for made in (healthy, control):
        write_run(tmp_path, made)
    document = view(tmp_path)
    assert choices(document)["contender"].value == f"{healthy.id}#0"
    assert choices(document)["baseline"].value == f"{control.id}#0"
    offered = choices(document)["contender"].options
    assert [name for name in offered if "control" in offered[name]] == [f"{control.id}#1"]
    asked = view(tmp_path, contender=f"{control.id}#1")
    assert choices(asked)["contender"].value == f"{control.id}#1"
    assert choices(asked)["baseline"].value == f"{control.id}#0"


def test_a_control_alone_is_offered_but_not_chosen(tmp_path):
    control = run(REGRESSED)
    write_run(tmp_path, control)
    document = view(tmp_path)
    assert choices(document)["contender"].value == f"{control.id}#0"
    (notice,) = of_kind(document, Notice)
    assert "bad on purpose: choose it" in notice.lines[0]


def test_a_link_to_what_is_shown_shows_the_same(tmp_path):
    write_run(tmp_path, run(REGRESSED))
    document = view(tmp_path)
    source = ScreenSource(tmp_path, open_index(tmp_path), NOW)
    again = open_view(source, document.address)
    assert words_of(again) == words_of(document)
    assert not again.complaints


def test_one_side_alone_says_that_there_is_nothing_to_compare_it_with(tmp_path):
    write_run(tmp_path, one_side(run()))
    document = view(tmp_path)
    (notice,) = of_kind(document, Notice)
    assert notice.title == "Both sides are the same"
    assert "measure another build" in notice.lines[0]
    assert not of_kind(document, Table)


def test_sides_of_two_runs_are_compared_as_the_command_line_does(tmp_path):
    old = one_side(run())
    new = replace(run(replace(REGRESSED, started_at=STARTED + timedelta(hours=1))), id="0badcafe")
    for each in (old, one_side(new, 1)):
        write_run(tmp_path, each)
    document = view(tmp_path)
    again, _ = (c.text for c in of_kind(document, Command))
    assert again == f"hybridwatch compare '{old.id}#0' '0badcafe#0'"
    words = [f"{old.id}#0", "0badcafe#0", "--results", str(tmp_path), "--json"]
    told = run_verb(*words, of=command)
    by_screen = {row[1]: row[0] for row in compared(document)}
    for comparison in json.loads(told.stdout)["comparisons"]:
        name = comparison["metric"]
        alike = [
            v for n, v in by_screen.items() if n in {name, f"{name} {comparison['statistic']}"}
        ]
        assert alike == [comparison["verdict"]]


def test_machines_are_compared_only_when_the_reader_chooses_so(tmp_path):
    old, new = one_side(run()), replace(one_side(run(Plan(seed=8))), id="0badcafe")
    new = replace(new, testbed=replace(TESTBED, id="xeon-8c", cores=8))
    for each in (old, replace(new, started_at=STARTED + timedelta(hours=1))):
        write_run(tmp_path, each)
    refused = view(tmp_path)
    (notice,) = of_kind(refused, Notice)
    assert "machines' as much as the engines'" in notice.title
    assert "testbed cores: 2 -> 8" in notice.lines
    assert not of_kind(refused, Table)
    assert choices(refused)["testbeds"].value == "refuse"
    allowed = view(tmp_path, testbeds="compare")
    assert choices(allowed)["testbeds"].value == "compare"
    assert ["testbed cores", "2", "8"] in table(allowed, "What differs between the two sides")
    assert of_kind(allowed, Command)[0].text.endswith("--across-testbeds")


def test_another_scenario_lets_go_of_the_sides_of_the_one_before(tmp_path):
    write_run(tmp_path, run(REGRESSED))
    other = run(Plan(scenario=scenario("smoke/other"), seed=4))
    write_run(tmp_path, other)
    first = run(REGRESSED).id
    document = view(tmp_path, scenario="smoke/other", baseline=f"{first}#0", contender=f"{first}#1")
    assert not document.complaints
    assert choices(document)["contender"].value == f"{other.id}#1"


@pytest.mark.parametrize("asked", ["gone#0", "0#7", "#", HOSTILE])
def test_a_side_that_is_not_there_is_reported(tmp_path, asked):
    write_run(tmp_path, run(WORSE))
    document = view(tmp_path, contender=asked)
    assert (document.title, len(document.complaints)) == ("No such contender", 1)
    assert not of_kind(document, Chart), "of no other side"
    assert document.address.values("contender") == (asked,)


def test_changed_answers_stand_side_by_side_and_text_stays_text(tmp_path):
    write_run(tmp_path, run(replace(WORSE, text=HOSTILE)))
    document = view(tmp_path)
    texts = [code.text for code in of_kind(document, Code)]
    assert any(HOSTILE in text for text in texts)
    assert {"prompt", "expected", "baseline: right", "contender: wrong"} <= {
        code.title for code in of_kind(document, Code)
    }


def test_what_differs_is_reported_fact_by_fact_and_what_does_not_is_folded(tmp_path):
    write_run(tmp_path, run(REGRESSED))
    document = view(tmp_path, contender=f"{run(REGRESSED).id}#1")
    differing = table(document, "What differs between the two sides")
    assert [row[0] for row in differing] == ["build", "fix padded-rows-prefilling"]
    shared = dict(table(document, "What both sides share"))
    assert shared["testbed cpu_model"] == "AMD EPYC 9654"
    assert shared["harness"] == "0.1.0"


def test_both_runs_are_a_click_away(tmp_path):
    write_run(tmp_path, run(REGRESSED))
    lead = view(tmp_path).lead
    assert {piece.to for piece in pieces(lead) if isinstance(piece, Link)} == {
        address("run", run=run(REGRESSED).id)
    }


def test_a_record_that_broke_since_is_reported_next_to_the_choices(tmp_path):
    write_run(tmp_path, run(WORSE))
    source = ScreenSource(tmp_path, open_index(tmp_path), NOW)
    list_records(tmp_path)[0].write_bytes(b"{")
    document = open_view(source, address("compare"))
    (notice,) = of_kind(document, Notice)
    assert "cannot be compared" in notice.title
    assert choices(document)["baseline"].options


def check_comparisons(record: Path) -> None:
    made = read_run(record)
    report = build_report(made)
    document = view(COMMITTED, contender=f"{made.id}#1", baseline=f"{made.id}#0")
    shown = {row[1]: row for row in compared(document)}
    assert len(shown) == len(report.comparisons)
    for comparison in report.comparisons:
        row = shown[name_of(comparison)]
        assert row[0] == comparison.verdict.value
        assert row[4] == numbers.change(comparison)
        assert row[6] == numbers.p_value(comparison.p_adjusted)
        assert row[7] == numbers.n(comparison)
    changes = [c for chart in of_kind(document, Chart) for c in chart.data.get("change", ())]
    drawn = [c for c in report.comparisons if c.metric.kind is not Kind.EXACT]
    assert sorted(changes) == sorted(c.effect for c in drawn if c.effect is not None)


def test_committed_records_say_what_the_analysis_says(subtests):
    for record in records_of_two_sides(COMMITTED):
        with subtests.test(record.stem):
            check_comparisons(record)


def test_the_forest_has_better_on_the_right_and_marks_what_goes_on_beyond_its_edge(tmp_path):
    report = build_report(run(replace(REGRESSED, slowdown=1.25)))
    rows = {name_of(row.comparison): row for row in build_rows(report.comparisons)}
    worse = [r for r in rows.values() if r.comparison.verdict is Verdict.REGRESSION]
    assert worse
    assert all(row.low <= row.at <= row.high < 0 for row in worse)
    assert rows["accuracy.recall"].band == pytest.approx(2.0)
    everything = list(rows.values())
    reach = compute_reach(everything)
    figure = figure_forest("changes", everything)
    drawn = [x for trace in figure.data for x in trace.x]
    assert max(map(abs, drawn)) <= reach
    arrows = [s for trace in figure.data if trace.mode != "markers" for s in trace.marker.symbol]
    cut = sum(abs(end) > reach for row in everything for end in (row.low, row.high))
    assert sum(symbol.startswith("arrow") for symbol in arrows) == cut > 0
    assert len(figure.layout.shapes) == len(everything)


def test_a_change_without_an_interval_does_not_count_as_within_the_band(tmp_path):
    write_run(tmp_path, run())
    (chart,) = of_kind(view(tmp_path), Chart)
    known = [low for low in chart.data["low"] if low is not None]
    assert 0 < len(known) < len(chart.data["low"])
    assert f" of {len(known)} intervals within the band." in chart.description
    assert "too few trials for an interval" in chart.description


def nights(results: Path) -> None:
    """Two scenarios of two builds: one is slower, and has lost a contract; the other is equal."""
    put(results, 1, slower=1.3, broken=2.0, builds=UPGRADE)
    put(results, 2, scenario="smoke/other", builds=UPGRADE)


def test_two_builds_are_compared_in_every_scenario_the_worst_first(tmp_path):
    nights(tmp_path)
    old, new = (build.label for build in UPGRADE)
    document = view(tmp_path, baseline=old, contender=new)
    assert document.address == builds_address(old, new)
    (verdict, _, said) = pieces(document.blocks[0].line)  # type: ignore[union-attr]
    assert verdict is Verdict.REGRESSION
    assert isinstance(said, str)
    assert said.startswith("Worse in 1 of 2 scenarios. Most of all: A contract broke in smoke/pad")
    changed = table(document, "What changed")
    assert changed[0][1] == "contract.padded_rows_prefilling"
    assert {row[2] for row in changed} == {"smoke/padded-graph-rows"}
    sizes = [abs(float(row[5].split()[0])) for row in changed if "%" in row[5]]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes
    (counts,) = of_kind(document, Facts)
    # The contract has no relative change, which the mean is of.
    assert str(counts.rows[0][1]).startswith(f"{len(changed)}, {len(sizes)} of them by ")
    folded = [block.title for block in of_kind(document, Folded)]
    assert folded == [f"What did not change ({len(table(document, 'What did not change'))})"]
    assert "smoke/other" in {row[2] for row in table(document, "What did not change")}


def test_a_release_or_a_line_stands_for_its_newest_build(tmp_path):
    nights(tmp_path)
    old, new = UPGRADE
    document = view(tmp_path, baseline=old.release, contender=new.release)
    assert document.address == builds_address(old.label, new.label)


def test_the_reader_goes_from_one_scenario_to_all_and_back(tmp_path):
    nights(tmp_path)
    sides = {"baseline": f"{1:08x}#0", "contender": f"{1:08x}#1"}
    everywhere = view(tmp_path, scenario="all", **sides)
    assert everywhere.address == builds_address(*(build.label for build in UPGRADE))
    words = dict(everywhere.address.parameters) | {"scenario": "smoke/other"}
    alone = view(tmp_path, **words)
    assert alone.address.values("contender") == (f"{2:08x}#1",)
    assert alone.address.values("baseline") == (f"{2:08x}#0",)
    assert not alone.complaints


def test_builds_that_nothing_measured_together_are_said_to_be_so(tmp_path):
    nights(tmp_path)
    other = replace(one_side(run(Plan(scenario=scenario("smoke/alone"), seed=5))), id="0badcafe")
    lonely = replace(other.builds[0], label="cpu-9", name="cpu-9")
    write_run(tmp_path, replace(other, builds=(lonely,)))
    said = words_of(view(tmp_path, baseline="cpu-9", contender=UPGRADE[1].label))
    assert "No scenario measured both builds on one testbed." in said
    assert "Both builds are the same" in words_of(
        view(tmp_path, baseline="cpu-9", contender="cpu-9")
    )
    assert view(tmp_path, baseline="cpu-8", contender="cpu-9").title == "No such baseline"


def test_what_cannot_be_judged_is_named_and_the_rest_is_shown(tmp_path):
    nights(tmp_path)
    source = ScreenSource(tmp_path, open_index(tmp_path), NOW)
    list_records(tmp_path)[0].write_bytes(b"{")
    (notice,) = of_kind(open_view(source, address("compare", scenario="all")), Notice)
    assert notice.title == "1 scenario cannot be compared"
    assert notice.lines[0].startswith("smoke/")


def test_the_sweep_is_the_picture_where_there_is_one(tmp_path):
    write_run(tmp_path, a_swept_run(even, tilted))
    first, *_ = of_kind(view(tmp_path), Chart)
    assert first.title == "Throughput against interactivity"
