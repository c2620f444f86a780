"""The picture of the month on the overview: which cell says what of which night."""

from datetime import timedelta
from pathlib import Path

import pytest

from hybridwatch.analysis.verdict import Verdict
from hybridwatch.history.machine_changes import MachineChange
from hybridwatch.pages.address import address
from hybridwatch.pages.document import Nights, plain
from hybridwatch.pages.screens import overview_news
from hybridwatch.records.store import write_run
from tests.builders import STARTED, TESTBED, a_build, a_comparison, noisy
from tests.unit.pages.suite_stores import KNOWN_BAD, UPGRADE, of_kind, put, rows, view

OTHER = "smoke/other"


def picture(results: Path, group: str = "") -> Nights:
    asked = {"group": [group]} if group else {}
    (found,) = of_kind(view(results, "overview", None, **asked), Nights)
    assert isinstance(found, Nights)
    return found


def test_a_cell_is_the_worst_verdict_of_its_night_and_leads_to_that_run(tmp_path: Path) -> None:
    put(tmp_path, 1, builds=UPGRADE)
    put(tmp_path, 4, broken=3.0, builds=UPGRADE)
    put(tmp_path, 20, scenario=OTHER, builds=UPGRADE)
    found = picture(tmp_path)
    assert [plain(name) for name, _ in found.rows] == ["smoke/padded-graph-rows", OTHER]
    assert len(found.nights) == 30
    assert found.nights[-1] == (STARTED + timedelta(days=20, hours=-12)).date()
    (_, bad), (_, good) = found.rows
    assert bad[-1].verdict is None
    assert bad[-1].title.endswith("not measured")
    assert bad[-17].verdict in {Verdict.REGRESSION, Verdict.BROKEN}
    assert bad[-17].to == address("run", run="00000004")
    assert bad[-20].verdict is not bad[-17].verdict
    assert good[-1].verdict is not None


def test_controls_and_what_was_not_asked_for_are_left_out(tmp_path: Path) -> None:
    put(tmp_path, 1, builds=UPGRADE)
    put(tmp_path, 2, broken=3.0, builds=KNOWN_BAD)
    put(tmp_path, 3, scenario="other/one", builds=UPGRADE)
    found = picture(tmp_path, group="smoke")
    assert [plain(name) for name, _ in found.rows] == ["smoke/padded-graph-rows"]
    assert found.nights[-1] == (STARTED + timedelta(days=1, hours=-12)).date()


def test_without_a_verdict_there_is_no_picture(tmp_path: Path) -> None:
    put(tmp_path, 2, broken=3.0, builds=KNOWN_BAD)
    assert of_kind(view(tmp_path, "overview"), Nights) == []


def test_releases_and_a_machine_that_changed_are_marked(tmp_path, monkeypatch) -> None:
    put(tmp_path, 1, builds=UPGRADE)
    put(tmp_path, 2, builds=(a_build("cpu-0.27.1"), a_build("cpu-0.28.0")))
    moment = STARTED + timedelta(days=1)
    changed = MachineChange(TESTBED.id, moment - timedelta(days=1), moment, ())
    monkeypatch.setattr(overview_news, "machine_changes", lambda _: (changed,))
    ((_, cells),) = picture(tmp_path).rows
    assert [cell.is_of_releases for cell in cells[-2:]] == [False, True]
    assert [cell.is_machine_new for cell in cells[-2:]] == [True, False]
    assert "the machine changed" in cells[-2].title


@pytest.mark.parametrize("is_decided", [True, False])
def test_what_is_undecided_beside_a_decided_throughput_is_a_small_mark(
    tmp_path: Path, is_decided: bool
) -> None:
    spread = 0.002 if is_decided else 0.4
    sides = (
        {"output_throughput": noisy(100.0, seed=seed, spread=spread), "ttft": wide}
        for seed, wide in ((1, noisy(0.1, seed=3, spread=0.4)), (2, noisy(0.1, seed=4, spread=0.4)))
    )
    write_run(tmp_path, a_comparison(*sides, started_at=STARTED + timedelta(days=30)))
    ((_, cells),) = picture(tmp_path).rows
    assert cells[-1].is_partly_open is is_decided
    assert cells[-1].verdict is (Verdict.EQUIVALENT if is_decided else Verdict.INCONCLUSIVE)
    assert ("equivalent but for 2 undecided metrics" in cells[-1].title) is is_decided
    caption = "1 scenario without trouble" if is_decided else "Where everything stands"
    ((grade, *_),) = rows(view(tmp_path, "overview"), caption)
    assert grade.startswith("equivalent|? ttft" if is_decided else "inconclusive")
