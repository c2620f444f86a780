from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from hybridwatch.analysis.policy import STRICT, Policy
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.database.queries import open_index
from hybridwatch.history.checkout import Checkout
from hybridwatch.pages.address import Address, address, read_query
from hybridwatch.pages.document import (
    Cell,
    Document,
    Grade,
    Link,
    Notice,
    Paragraph,
    Short,
    Table,
    build_cell,
    pieces,
    plain,
)
from hybridwatch.pages.screens import ScreenSource, open_view
from hybridwatch.records.run import Run
from hybridwatch.records.store import write_run
from hybridwatch.scenarios.load import load_scenario
from tests.broken_engines import dead_contender
from tests.dashboard.parity import words_of
from tests.planted_world.plan import CHAT, NOTHING, SHORTEST, A, morning, plan_nothing
from tests.planted_world.records import write_world
from tests.planted_world.replay import cut_off
from tests.store_builders import FIX, REGRESSED, STARTED, Plan, build, run, scenario
from tests.unit.pages.suite_stores import all_blocks, table

NOW = STARTED + timedelta(hours=3)
SCENARIOS = Path(__file__).parents[3] / "scenarios"


def candidate(plan: Plan) -> Run:
    """A run whose contender is another build, not one that is bad on purpose."""
    made = run(replace(plan, bad_contender=False))
    label = f"cpu-{plan.release}-candidate"
    return replace(made, builds=(made.builds[0], replace(build(), label=label, name=label)))


def opened(results: Path, query: str = "", checkout: Checkout | None = None) -> Document:
    source = ScreenSource(results, open_index(results), NOW, checkout=lambda: CHECKOUT)
    if checkout is not None:
        source = replace(source, checkout=lambda: checkout)
    return open_view(source, read_query("overview", query))


CHECKOUT = Checkout()


def captions(document: Document) -> list[str]:
    return [block.caption for block in all_blocks(document) if isinstance(block, Table)]


def loud(document: Document) -> list[Notice]:
    blocks = all_blocks(document)
    return [b for b in blocks if isinstance(b, Notice) and not b.quiet]


def said(document: Document) -> str:
    return "\n".join(plain(b.line) for b in all_blocks(document) if isinstance(b, Paragraph))


def verdicts(cells: Sequence[object]) -> list[Verdict]:
    found = []
    for cell in cells:
        content = cell.content if isinstance(cell, Cell) else cell
        for piece in pieces(content):  # type: ignore[arg-type]
            if isinstance(piece, Verdict):
                found.append(piece)
            elif isinstance(piece, Grade):
                found.append(piece.verdict)
    return found


def links(cell: object) -> list[Address]:
    whole = build_cell(cell)  # type: ignore[arg-type]
    found = (*pieces(whole.content), *pieces(whole.under))
    return [p.to for p in found if isinstance(p, Link) and isinstance(p.to, Address)]


SLOW = Plan(slowdown=1.3, seed=3)


def test_empty_store_says_what_to_do(tmp_path: Path) -> None:
    document = opened(tmp_path)
    assert "No runs yet" in said(document)
    assert captions(document) == []


def test_a_regression_stands_in_the_grid_with_links_to_its_run_and_history(tmp_path: Path) -> None:
    write_run(tmp_path, candidate(SLOW))
    grid = table(opened(tmp_path), "Where everything stands")
    row = grid.rows[0]
    names = [column.name for column in grid.columns]
    assert build_cell(row[0]).content is Verdict.REGRESSION
    assert plain(build_cell(row[0]).under) == "since 3 h ago"
    slow = build_cell(row[names.index("throughput")])
    assert verdicts([slow]) == [Verdict.REGRESSION]
    assert "%" in plain(slow.content)
    builds = ["cpu-0.27.1", "cpu-0.27.1-candidate"]
    assert links(slow) == [
        address("run", run=candidate(SLOW).id, metric="output_throughput"),
        address(
            "scenario",
            scenario="smoke/padded-graph-rows",
            testbed="epyc-9654-2c-linux",
            metric="output_throughput",
            build=builds,
        ),
    ]
    assert verdicts([row[names.index("contracts")]]) == [Verdict.EQUIVALENT]


def test_the_linked_history_shows_that_metric_without_complaint(tmp_path: Path) -> None:
    write_run(tmp_path, candidate(SLOW))
    row = table(opened(tmp_path), "Where everything stands").rows[0]
    source = ScreenSource(tmp_path, open_index(tmp_path), NOW)
    for cell in row[1:]:
        for view in links(cell):
            assert open_view(source, view).complaints == ()


def test_a_failed_run_is_louder_than_a_slow_one(tmp_path: Path) -> None:
    write_run(tmp_path, candidate(SLOW))
    dead = candidate(replace(SLOW, slowdown=1.0, scenario=scenario("smoke/one-token-extend")))
    there = [trial for trial in dead.trials if trial.side == 0]
    trials = tuple(replace(trial, index=at) for at, trial in enumerate(there))
    write_run(tmp_path, replace(dead, trials=trials))
    grid = table(opened(tmp_path), "Where everything stands")
    firsts = [build_cell(row[0]).content for row in grid.rows]
    assert firsts == [Verdict.MISSING, Verdict.REGRESSION]


def test_a_known_bad_control_does_not_alarm(tmp_path: Path) -> None:
    write_run(tmp_path, run(REGRESSED))
    document = opened(tmp_path)
    assert "Where everything stands" not in captions(document)
    assert loud(document) == []
    controls = table(document, "Newest known-bad controls")
    assert plain(build_cell(controls.rows[0][0]).content) == "equivalent caught"
    assert "1 of 1 bug caught, the healthy engine clean" in said(document)
    assert Verdict.REGRESSION not in verdicts([cell for row in controls.rows for cell in row])


def test_a_control_that_is_not_caught_is_loud(tmp_path: Path) -> None:
    write_run(tmp_path, run(Plan(bad_contender=True)))
    (notice,) = loud(opened(tmp_path))
    assert "1 known-bad control not caught" in notice.title
    assert FIX in plain(notice.lines[0])


def test_a_broken_record_is_named_loudly(tmp_path: Path) -> None:
    write_run(tmp_path, candidate(SLOW))
    (tmp_path / "records" / "epyc-9654-2c-linux" / "20261121T000000Z-x-1.json").write_text("{")
    (notice,) = loud(opened(tmp_path))
    assert notice.title == "1 record could not be read"


def test_an_expected_scenario_without_a_record_is_loud(tmp_path: Path) -> None:
    here = load_scenario(SCENARIOS / "smoke" / "padded-graph-rows.toml", SCENARIOS)
    other = here.model_copy(update={"id": "smoke/never-measured"})
    idle = here.model_copy(update={"id": "gpu/never-measured"})
    known = {each.id: each for each in (here, other, idle)}
    checkout = Checkout(scenarios=known, policy=Policy(expected=("smoke",)))
    write_run(tmp_path, candidate(SLOW))
    (notice,) = loud(opened(tmp_path, checkout=checkout))
    assert notice.title == "1 expected measurement missing"
    assert plain(notice.lines[0]).startswith("smoke/never-measured: missing: there is no record")


@pytest.mark.parametrize("empty", [True, False])
def test_expected_scenarios_are_loud_in_an_empty_store_too(tmp_path: Path, empty: bool) -> None:
    here = load_scenario(SCENARIOS / "smoke" / "padded-graph-rows.toml", SCENARIOS)
    checkout = Checkout(scenarios={here.id: here}, policy=Policy(expected=("smoke",)))
    if not empty:
        write_run(tmp_path, candidate(SLOW))
    assert bool(loud(opened(tmp_path, checkout=checkout))) is empty


WAITING = timedelta(days=4)


def opened_later(results: Path, policy: Policy = STRICT) -> Document:
    source = ScreenSource(results, open_index(results), NOW + WAITING)
    later = replace(source, checkout=lambda: Checkout(policy=policy))
    return open_view(later, read_query("overview", ""))


def test_what_was_not_measured_recently_is_loud_and_not_without_trouble(tmp_path: Path) -> None:
    write_run(tmp_path, candidate(Plan(seed=5)))
    document = opened_later(tmp_path)
    (notice,) = loud(document)
    assert "not measured since 2026-11-21 (4 days)" in plain(notice.lines[0])
    cell = build_cell(table(document, "Where everything stands").rows[0][0])
    assert plain(cell.content) == "missing not measured"
    assert plain(cell.under).startswith("since 4 d ago, then ")
    assert not [c for c in captions(document) if "without trouble" in c]


def test_what_the_policy_no_longer_expects_is_silent(tmp_path: Path) -> None:
    write_run(tmp_path, candidate(Plan(seed=5)))
    assert loud(opened_later(tmp_path, Policy(max_age_days=30.0))) == []


def test_a_control_is_no_measurement_of_its_scenario_next_to_comparisons(tmp_path: Path) -> None:
    write_run(tmp_path, run(REGRESSED))
    control = loud(opened_later(tmp_path))
    other = candidate(Plan(seed=5))
    write_run(tmp_path, replace(other, scenario=replace(other.scenario, id="smoke/dummy-run")))
    both = loud(opened_later(tmp_path))
    named = [[plain(line).split(" ")[0] for line in notice.lines[:-1]] for notice in control + both]
    assert named == [["smoke/padded-graph-rows"], ["smoke/dummy-run"]]


def test_open_alerts_are_counted_named_and_linked(tmp_path: Path) -> None:
    write_run(tmp_path, candidate(SLOW))
    said_of = (block for block in opened(tmp_path).blocks if isinstance(block, Paragraph))
    first = next(block for block in said_of if "open alert" in plain(block.line))
    assert plain(first.line).startswith(
        "1 open alert, 1 of them would block: smoke/padded-graph-rows: slower (opened 3 h ago)"
    )
    views = [piece.to for piece in pieces(first.line) if isinstance(piece, Link)]
    source = ScreenSource(tmp_path, open_index(tmp_path), NOW)
    assert all(isinstance(to, Address) and not open_view(source, to).complaints for to in views)


def test_without_an_open_alert_that_is_said(tmp_path: Path) -> None:
    write_run(tmp_path, candidate(Plan(seed=5)))
    assert "No alert is open." in said(opened(tmp_path))


def test_what_got_worse_since_yesterday_stands_first(tmp_path: Path) -> None:
    before = replace(SLOW, slowdown=1.0, started_at=STARTED - timedelta(days=3))
    write_run(tmp_path, candidate(before))
    write_run(tmp_path, candidate(SLOW))
    document = opened(tmp_path)
    assert captions(document)[0] == "Changed since yesterday"
    rows = table(document, "Changed since yesterday").rows
    assert rows[0][0] is Verdict.REGRESSION
    assert plain(build_cell(rows[0][2]).content).startswith("Slower: ttft +30")
    assert all(row[3] is not Verdict.REGRESSION for row in rows)


def test_a_dead_engine_is_one_piece_of_news_with_its_reason(tmp_path: Path) -> None:
    dead = dead_contender()
    builds = (dead.builds[0], replace(dead.builds[1], fixes=dead.builds[0].fixes, release="0.28.0"))
    write_run(tmp_path, replace(dead, started_at=STARTED, builds=builds))
    rows = table(opened(tmp_path), "Changed since yesterday").rows
    assert [row[0] for row in rows] == [Verdict.FAILED]
    assert "an illegal memory access" in plain(build_cell(rows[0][2]).content)


def test_what_was_bad_before_yesterday_is_no_news(tmp_path: Path) -> None:
    for days in (3, 0):
        moment = STARTED - timedelta(days=days)
        write_run(tmp_path, candidate(replace(SLOW, started_at=moment)))
    document = opened(tmp_path)
    assert "Changed since yesterday" not in captions(document)
    assert "Where everything stands" in captions(document)
    assert "Changed since a week ago" in captions(opened(tmp_path, "since=7"))


def test_the_head_names_the_folder_and_its_whole_path_on_hover(tmp_path: Path) -> None:
    write_run(tmp_path, candidate(SLOW))
    lead = opened(tmp_path).lead
    assert plain(lead).endswith(f" \N{MIDDLE DOT} {tmp_path.name}")
    assert str(tmp_path) not in plain(lead)
    assert pieces(lead)[-1] == Short(tmp_path.name, str(tmp_path))


def test_filters_keep_what_they_say_and_wrong_ones_are_reported(tmp_path: Path) -> None:
    write_run(tmp_path, candidate(SLOW))
    write_run(tmp_path, candidate(replace(SLOW, scenario=scenario("curated/else"), seed=4)))
    document = opened(tmp_path, "group=curated")
    rows = table(document, "Where everything stands").rows
    assert [plain(build_cell(row[1]).content) for row in rows] == ["curated/else"]
    wrong = opened(tmp_path, "group=nowhere&build=%3Cscript%3E&since=x&foo=1")
    assert len(wrong.complaints) == 4
    assert len(table(wrong, "Where everything stands").rows) == 2


def test_a_red_that_starts_explain_is_said_to_be_no_more_than_that(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    write_world(whole, plan_nothing(1, SHORTEST, NOTHING["start-modes"], (CHAT,), (A,)))
    said = []
    for night in (4, 20):  # young, and known for two modes of starts
        folder = cut_off(whole, night, tmp_path / str(night))
        source = ScreenSource(folder, open_index(folder), morning(night), checkout=lambda: CHECKOUT)
        view = open_view(source, read_query("overview", ""))
        said.append("(may be chance)" in "\n".join(words_of(view)))
    assert said == [False, True]
