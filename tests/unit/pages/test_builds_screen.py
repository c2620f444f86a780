"""Builds, fixes and the card of releases as screens tell them."""

from dataclasses import replace
from pathlib import Path

from hybridwatch.history.checkout import Checkout
from hybridwatch.orchestration.nightly.checkout import checkout_here
from hybridwatch.pages.document import Link, build_cell, pieces
from hybridwatch.records.identity import FixState
from hybridwatch.records.store.files import append_entry
from hybridwatch.reports.releases import cells_file
from hybridwatch.scenarios.fixes import FIXES
from hybridwatch.scenarios.load import load_scenario
from tests.builders import BASELINE, a_build
from tests.checkout import make_checkout
from tests.dashboard.parity import words_of
from tests.unit.pages.suite_stores import FIX, KNOWN_BAD, UPGRADE, notices, put, rows, table, view
from tests.unit.reports.releases.cells import PADDED, TOKENS, a_cell

ROOT = Path(__file__).parents[3]
SCENARIOS = ROOT / "scenarios"
HOSTILE = "<img src=x onerror=alert(1)> **bold**"


def checkout(**builds: str) -> Checkout:
    """One scenario that proves the fix, and some builds."""
    scenario = load_scenario(SCENARIOS / "smoke" / "padded-graph-rows.toml", SCENARIOS)
    listed = {name.replace("_", "."): release for name, release in builds.items()}
    return Checkout(scenarios={scenario.id: scenario}, builds=listed)


def row_of(document, fix: str) -> list[str]:
    (found,) = (row for row in rows(document, "Fixes by build") if row[0].split("|")[0] == fix)
    return found


def test_an_empty_store_lists_what_could_be_measured(tmp_path: Path) -> None:
    document = view(tmp_path, "builds", Checkout(builds={"cpu-0.28.0": "0.28.0"}))
    assert "make run" in words_of(document)
    assert rows(document, "Builds") == [["cpu-0.28.0", "0.28.0", "-", "0", "not measured"]]


def test_nothing_known_at_all_is_no_traceback(tmp_path: Path) -> None:
    document = view(tmp_path, "builds")
    assert document.lead == "0 builds measured, 0 listed and not measured"


def test_states_are_as_probed_and_switched_builds_wait_for_a_choice(tmp_path: Path) -> None:
    put(tmp_path, 1, broken=3.0, builds=KNOWN_BAD)
    document = view(tmp_path, "builds", checkout())
    assert [c.name for c in table(document, "Fixes by build").columns[2:]] == ["cpu-0.27.1"]
    assert row_of(document, FIX)[2:] == ["\u2714 present"]
    assert row_of(document, "conv-anchor")[2:] == ["-"]
    assert {row[0].split("|")[0] for row in rows(document, "Fixes by build")} == set(FIXES)
    switched = KNOWN_BAD[1].label
    chosen = view(tmp_path, "builds", checkout(), build=["cpu-0.27.1", switched])
    assert row_of(chosen, FIX)[2:] == ["\u2714 present", "\u2212 reverted"]
    assert [switched, "0.27.1", f"reverted: {FIX}"] == rows(document, "Builds")[1][:3]


def test_every_state_is_reported(tmp_path: Path) -> None:
    for number, state in enumerate(FixState):
        build = a_build(f"cpu-{number}", fixes={FIX: state}, release=f"0.{number}.0")
        put(tmp_path, number, builds=(build, build))
    names = [f"cpu-{number}" for number in range(len(FixState))]
    told = row_of(view(tmp_path, "builds", build=names), FIX)[2:]
    said = ["n/a", "reverted", "applied", "lacking", "present"]
    assert [any(word in cell for word in said) for cell in told] == [True] * len(said)
    assert [cell.split()[-1] for cell in told] == said


def test_a_fix_is_proved_by_the_newest_control_of_its_scenario(tmp_path: Path) -> None:
    put(tmp_path, 1, builds=KNOWN_BAD)
    newest = put(tmp_path, 2, broken=3.0, builds=KNOWN_BAD)
    document = view(tmp_path, "builds", checkout())
    proved = row_of(document, FIX)[1]
    assert proved == "smoke/padded-graph-rows caught 28 d ago"
    (row,) = (r for r in table(document, "Fixes by build").rows if build_cell(r[0]).content == FIX)
    (link,) = (p for p in pieces(build_cell(row[1]).content) if isinstance(p, Link))
    assert not isinstance(link.to, str)
    assert link.to.href() == f"run?run={newest}"


def test_a_control_that_saw_nothing_does_not_prove(tmp_path: Path) -> None:
    put(tmp_path, 1, broken=3.0, builds=KNOWN_BAD)
    put(tmp_path, 2, builds=KNOWN_BAD)
    assert "not caught" in row_of(view(tmp_path, "builds", checkout()), FIX)[1]


def test_a_scenario_without_a_run_says_so(tmp_path: Path) -> None:
    put(tmp_path, 1, builds=UPGRADE)
    assert (
        row_of(view(tmp_path, "builds", checkout()), FIX)[1] == "smoke/padded-graph-rows, not run"
    )


def test_builds_without_a_run_are_listed_after_the_measured(tmp_path: Path) -> None:
    put(tmp_path, 1, builds=UPGRADE)
    document = view(tmp_path, "builds", checkout(**{"cpu-0_27_1": "0.27.1", "cpu-9_0": "9.0"}))
    assert [(row[0], row[3]) for row in rows(document, "Builds")] == [
        ("nightly", "1"),
        ("cpu-0.27.1", "1"),
        ("cpu-9.0", "0"),
    ]
    assert document.lead == "2 builds measured, 1 listed and not measured"


def test_releases_stand_by_number_not_by_letter(tmp_path: Path) -> None:
    for number, release in enumerate(("0.9.0", "0.10.0", "main")):
        build = a_build(f"cpu-{release}", release=release)
        put(tmp_path, number, builds=(build, build))
    names = [row[0] for row in rows(view(tmp_path, "builds"), "Builds")]
    assert names == ["cpu-0.10.0", "cpu-0.9.0", "cpu-main"]


def test_a_build_that_was_probed_otherwise_before_says_so(tmp_path: Path) -> None:
    old = replace(BASELINE, fixes={FIX: FixState.LACKING})
    put(tmp_path, 1, builds=(old, old))
    put(tmp_path, 2, builds=(BASELINE, BASELINE))
    document = view(tmp_path, "builds")
    assert row_of(document, FIX)[2] == "\u2714 present|otherwise in older runs"


def test_builds_of_other_tools_have_no_column(tmp_path: Path) -> None:
    foreign = a_build("asv 1a2b3c", fixes={})
    put(tmp_path, 1, builds=(foreign, foreign))
    assert "asv 1a2b3c" not in "\n".join(words_of(view(tmp_path, "builds")))


def test_hostile_labels_stay_text_and_unknown_fixes_are_shown(tmp_path: Path) -> None:
    build = a_build(HOSTILE, fixes={HOSTILE: FixState.PRESENT})
    put(tmp_path, 1, builds=(build, build))
    document = view(tmp_path, "builds")
    assert row_of(document, HOSTILE)[2] == "\u2714 present"
    assert table(document, "Fixes by build").columns[2].name == HOSTILE


def test_a_checkout_that_cannot_be_read_is_reported_and_the_rest_shown(tmp_path, monkeypatch):
    home = tmp_path / "home"
    make_checkout(home, "smoke/good", "smoke/bad")
    (home / "scenarios" / "smoke" / "bad.toml").write_text("version = ")
    (home / "ci").mkdir()
    (home / "ci" / "gate.toml").write_text("rule = 1")
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(home))
    found = checkout_here()
    assert set(found.scenarios) == {"smoke/good"}
    assert dict(found.builds) == {"tiny-1.0": "1.0"}
    (notice,) = notices(view(tmp_path / "results", "builds", found))
    told = "\n".join(map(str, notice.lines))
    assert "bad.toml" in told
    assert "gate.toml" in told


def test_no_checkout_is_reported(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(tmp_path / "none"))
    (problem,) = checkout_here().problems
    assert "HYBRIDWATCH_HOME" in problem


def test_our_own_checkout_is_read_in_full(monkeypatch) -> None:
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(ROOT))
    found = checkout_here()
    assert found.problems == ()
    assert "cpu-0.27.1" in found.builds
    assert found.policy.rules
    assert found.calibration() is not None


def test_without_a_cell_the_screen_says_how_to_get_one(tmp_path):
    assert "hybridwatch releases run" in words_of(view(tmp_path, "releases"))


def test_a_red_cell_without_a_reason_is_loud_and_differs_from_its_neighbour(tmp_path):
    for cell in (a_cell("0.32.0", "v2", TOKENS), a_cell("0.31.0", "v2")):
        append_entry(cells_file(tmp_path), cell)
    shown = view(tmp_path, "releases")
    loud = notices(shown)[0]
    assert (loud.quiet, loud.lines) == (False, (f"{PADDED} 0.32.0 v2: {TOKENS}",))
    told = "broken [not explained]"
    assert [PADDED, told, "owed", "clean", "owed"] in rows(shown, "Releases")
    assert [row[1:] for row in rows(shown, "Differences")] == [[PADDED, "clean", told]]


def test_cells_that_cannot_be_read_are_named(tmp_path):
    append_entry(cells_file(tmp_path), a_cell())
    cells_file(tmp_path).write_text("no cell\n" * 2, encoding="utf-8")
    assert "cells.jsonl:1" in str(notices(view(tmp_path, "releases"))[0].lines)


def test_the_newest_night_of_a_release_comes_first(tmp_path: Path) -> None:
    for nth, night in enumerate((9, 10, 100)):
        release = f"0.30.0.dev{night}+g{night:07x}"
        nightly = a_build(f"nightly-{night}", release=release)
        put(tmp_path, nth, builds=(BASELINE, nightly))
    shown = [c.name for c in table(view(tmp_path, "builds"), "Fixes by build").columns[2:5]]
    assert shown == ["nightly-100", "nightly-10", "nightly-9"]
