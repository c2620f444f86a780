"""One cause is one alert on every page, in every message and for every program; releases are none.

Each store has planted faults: one on three machines in one night, two in one night, a release pair.
"""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from hybridwatch.analysis.alerts import Status
from hybridwatch.analysis.policy import STRICT
from hybridwatch.database.queries import open_index
from hybridwatch.history.checkout import Checkout
from hybridwatch.history.newest_runs import findings_for
from hybridwatch.integrations.notify.gather import TopicPlace, gather_topics
from hybridwatch.integrations.notify.news import TopicStatus
from hybridwatch.pages.address import Address
from hybridwatch.pages.document import Document, Link, Paragraph, build_cell, pieces, plain
from hybridwatch.pages.screens.screen import alerts_here
from hybridwatch.records.store import write_run
from hybridwatch.reports.jsonform import alert_to_json
from hybridwatch.reports.markdown import SHOWN, build_rows
from tests.builders import BASELINE, NEWER, STARTED, TESTBED, a_build, a_run, noisy
from tests.command_line import run_verb
from tests.dashboard.parity import words_of
from tests.unit.analysis.alerts.builders import acknowledge
from tests.unit.pages.suite_stores import act, alerts, rows, source_of, table, view

BEDS = ("epyc-4c", "h100", "h200")
SCENARIOS = ("smoke/one", "smoke/two")
RIGHT, WRONG = "1" * 30, "0" * 30


def put(
    results: Path,
    night: int,
    *,
    slower: float = 1.0,
    answers: str = RIGHT,
    bed: str = BEDS[0],
    scenario: str = SCENARIOS[0],
    builds=None,
    hours: float = 0.0,
) -> str:
    """Store what one machine measured of one scenario in a night; gives the run's id."""
    label = f"nightly-202611{night + 1:02}"
    seed = 100 * night + 10 * BEDS.index(bed) + len(scenario)
    run = a_run(
        {"ttft": noisy(0.1, seed=seed + 500), "accuracy.recall": RIGHT},
        {"ttft": noisy(0.1 * slower, seed=seed + 1500), "accuracy.recall": answers},
        id=f"{len(list(results.rglob('*.json'))):08x}",
        started_at=STARTED + timedelta(days=night, hours=hours),
        testbed=replace(TESTBED, id=bed),
        builds=builds or (BASELINE, a_build(label, release=f"0.33.0.dev{night}")),
    )
    write_run(results, replace(run, scenario=replace(run.scenario, id=scenario)))
    return run.id


@pytest.fixture
def one_fault(tmp_path: Path) -> Path:
    """Two scenarios on three machines, good one night and slower the next."""
    for night, slower in enumerate((1.0, 1.5)):
        for bed in BEDS:
            for scenario in SCENARIOS:
                put(tmp_path, night, slower=slower, bed=bed, scenario=scenario)
    return tmp_path


@pytest.fixture
def releases(tmp_path: Path) -> Path:
    """A night without news, and a release that is slower in ten scenarios."""
    for number in range(10):
        put(tmp_path, 1, slower=1.5, scenario=f"curated/{number}", builds=(BASELINE, NEWER))
        put(tmp_path, 1, scenario=f"curated/{number}", hours=1.0)
    return tmp_path


def topics(results: Path):
    now = STARTED + timedelta(days=1, hours=9)
    return gather_topics(TopicPlace(results, open_index(results), Checkout()), now)


def test_a_fault_that_three_machines_show_is_one_row_with_its_members(one_fault: Path) -> None:
    (row,) = rows(view(one_fault, "alerts"), "Alerts")
    assert row[1].startswith("smoke/one and smoke/two on 3 testbeds|Slower: ttft +")
    assert row[3] == "nightly|against\N{NO-BREAK SPACE}cpu-0.27.1, 3 testbeds"
    link = next(
        p
        for p in pieces(build_cell(table(view(one_fault, "alerts"), "Alerts").rows[0][1]).content)
        if isinstance(p, Link)
    )
    assert isinstance(link.to, Address)
    (key,) = link.to.values("alert")
    page = view(one_fault, "alerts", alert=key)
    assert len(rows(page, "Where it shows")) == 6
    assert "Slower in smoke/one and smoke/two on 3 testbeds: ttft +" in "\n".join(words_of(page))


def test_each_member_has_a_page_that_leads_to_the_others(one_fault: Path) -> None:
    for alert in alerts(one_fault):
        page = view(one_fault, "alerts", alert=alert.subject.key)
        assert not page.complaints
        cells = [row[0] for row in rows(page, "Where it shows")]
        assert sum("(below)" in cell for cell in cells) == 1


def first_paragraph(page: Document) -> Paragraph:
    """Of alerts; what is above them explains the picture of nights."""
    blocks = (block for block in page.blocks if isinstance(block, Paragraph))
    return next(block for block in blocks if "alert" in plain(block.line))


def test_the_overview_has_one_link_for_a_cause_the_newest_first(one_fault: Path) -> None:
    put(one_fault, 0, answers=WRONG, scenario="smoke/old")
    first = first_paragraph(view(one_fault, "overview"))
    assert len([p for p in pieces(first.line) if isinstance(p, Link)]) == 3
    said = plain(first.line)
    assert said.startswith(
        "2 open alerts, 2 of them would block, the newest first: "
        "smoke/one and smoke/two on 3 testbeds: slower, ttft +"
    )
    assert "smoke/old: answers were lost" in said


def test_one_cause_is_one_message_that_names_its_places(one_fault: Path, tmp_path: Path) -> None:
    (file := tmp_path / "notify.toml").write_text(
        '[[slack]]\nname = "team"\nurl_from = "X"\ngaps = false\n'
    )
    words = ("notify", str(file), "--results", str(one_fault), "--dry-run")
    said = run_verb(*words).stdout.splitlines()
    assert said[0] == "slack team: 1 new message, 0 waiting"
    assert said[1].startswith("  new: Slower in smoke/one and smoke/two on 3 testbeds: ttft +")
    assert said[1].endswith("(build nightly against cpu-0.27.1)")
    (content,) = {topic.content() for topic in topics(one_fault) if not topic.is_gap}
    assert len(content.members) == 6
    assert content.members[0].startswith("smoke/")


def test_a_message_about_one_place_names_its_machine_and_its_build(tmp_path: Path) -> None:
    put(tmp_path, 1, slower=1.5, bed="h100")
    (file := tmp_path / "notify.toml").write_text(
        '[[slack]]\nname = "team"\nurl_from = "X"\ngaps = false\n'
    )
    words = ("notify", str(file), "--results", str(tmp_path), "--dry-run")
    said = run_verb(*words).stdout
    assert said.endswith("(build nightly against cpu-0.27.1, testbed h100)\n")


def test_two_faults_of_one_night_in_two_areas_are_two(one_fault: Path) -> None:
    for bed in BEDS:
        put(one_fault, 1, answers=WRONG, bed=bed, scenario="smoke/three")
    found = [row[1].partition(":")[0] for row in rows(view(one_fault, "alerts"), "Alerts")]
    assert found == [
        "smoke/three on 3 testbeds|Answers were lost",
        "smoke/one and smoke/two on 3 testbeds|Slower",
    ]
    assert len({topic.cause for topic in topics(one_fault) if not topic.is_gap}) == 2


def test_programs_get_one_alert_with_its_members(one_fault: Path) -> None:
    (group,) = alerts_here(source_of(one_fault))
    told = alert_to_json(group)
    assert told["key"] == group.key
    assert {one["testbed"] for one in told["members"]} == set(BEDS)
    assert [one["status"] for one in told["members"]] == ["open"] * 6
    for one in group.current:
        act(one_fault, one, acknowledge("known"), "ada")
    (answered,) = alerts_here(source_of(one_fault))
    told = alert_to_json(answered)
    assert (told["status"], told["version"], len(told["decisions"])) == ("acknowledged", 6, 1)


def test_a_release_pair_with_ten_regressions_opens_nothing(releases: Path) -> None:
    assert {alert.status for alert in alerts(releases)} == {Status.RELEASE}
    words = "\n".join(words_of(view(releases, "alerts")))
    assert "No alert is of this status, scenario and person." in words
    assert {t.standing for t in topics(releases) if not t.is_gap} == {TopicStatus.CLOSED}
    assert plain(first_paragraph(view(releases, "overview")).line) == "No alert is open."


def test_what_a_release_lost_stands_with_the_builds_and_can_be_asked_for(releases: Path) -> None:
    (row,) = rows(view(releases, "builds"), "Between releases")
    assert row[0] == "cpu-0.28.0"
    assert row[1].startswith("Slower in curated/0 and 9 more scenarios: ttft +")
    assert (row[2], row[4]) == ("cpu-0.27.1", "between two releases")
    (listed,) = rows(view(releases, "alerts", status="release"), "Alerts")
    assert listed[5] == "between two releases|blocks"


def test_a_release_pair_is_one_line_of_the_gate_that_stops_nothing(releases: Path) -> None:
    found = findings_for((), releases, STRICT, now=STARTED + timedelta(days=1, hours=9))
    assert len(found.reports) == 10
    assert found.gate.passed
    (line,) = found.gate.warnings
    assert line.startswith("releases: cpu-0.28.0 against cpu-0.27.1: 10 regressions, see ")
    run = line.split()[-1]
    run_verb("gate", run, "--results", releases, status=1)


def test_releases_alone_are_what_there_is_to_judge(tmp_path: Path) -> None:
    put(tmp_path, 1, slower=1.5, builds=(BASELINE, NEWER))
    found = findings_for((), tmp_path, STRICT, now=STARTED + timedelta(days=1, hours=9))
    assert not found.gate.passed


def test_what_stops_comes_before_what_was_left_out(releases: Path) -> None:
    for number in range(SHOWN):
        put(releases, 1, slower=1.5, scenario=f"curated/{number}", hours=2.0)
        put(
            releases,
            -5,
            slower=1.5,
            scenario=f"curated/{number}",
            builds=(BASELINE, a_build(f"pr-{number}")),
        )
    found = findings_for((), releases, STRICT, now=STARTED + timedelta(days=1, hours=9))
    assert len(found.left_out) == 1 + SHOWN
    shown = build_rows(found)[:SHOWN]
    assert all(row.found is not None for row in shown)


def test_what_was_once_measured_of_many_scenarios_is_one_line(releases: Path) -> None:
    for number in range(10):
        put(
            releases,
            -5,
            slower=1.5,
            scenario=f"curated/{number}",
            builds=(BASELINE, a_build("pr-7")),
        )
    found = findings_for((), releases, STRICT, now=STARTED + timedelta(days=1, hours=9))
    lines = [one.reason for one in found.left_out if "pr-7" in one.reason]
    assert len(lines) == 1
    assert lines[0].endswith(" and 9 more")
