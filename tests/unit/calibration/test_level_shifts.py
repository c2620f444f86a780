"""F1 on histories that people marked: by hand, from files, and in the table."""

import json
from pathlib import Path

import numpy as np
import pytest

from hybridwatch.errors import HistoryError
from hybridwatch_lab.calibration import level_shifts
from hybridwatch_lab.calibration.level_shifts import (
    FINDERS,
    SERIES,
    compute_f1,
    read_series,
    write_table,
)


@pytest.mark.parametrize(
    ("marks", "found", "score"),
    [
        ({"a": [10], "b": []}, [12], 1.0),
        ({"a": [10], "b": []}, [], 2 * 0.75 / 1.75),  # recall 1/2 and 1
        ({"a": [10], "b": []}, [12, 50], 2 * (2 / 3) / (5 / 3)),
        ({"a": [10]}, [16], 0.5),  # six points off: one claim of two, one mark of two
        ({"a": [10, 14]}, [12], 2 * (2 / 3) / (5 / 3)),  # one claim serves one mark
        ({"a": []}, [], 1.0),
    ],
)
def test_f1_is_what_a_hand_computes(marks, found, score) -> None:
    assert compute_f1(marks, found) == pytest.approx(score)


def checkout(folder: Path, marks: list[int]) -> Path:
    """Every series steps up by 50 % at point 30; ``marks`` are where one person saw it."""
    noise = np.random.default_rng(1).normal(0, 1, 60)
    values = [100 + 50 * (at >= 30) + one for at, one in enumerate(noise)]
    for name in SERIES:
        file = folder / "datasets" / name / f"{name}.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"series": [{"raw": values}]}))
    (folder / "annotations.json").write_text(json.dumps({name: {"1": marks} for name in SERIES}))
    return folder


def means(folder: Path) -> dict[str, float]:
    last = write_table(list(read_series(folder))).splitlines()[-1]
    return dict(zip(FINDERS, map(float, last.strip("| ").split(" | ")[1:]), strict=True))


def test_a_step_is_found_and_a_detector_that_misplaces_it_is_not_believed(
    tmp_path, monkeypatch
) -> None:
    folder = checkout(tmp_path, [30])
    found = means(folder)
    assert found["confirmed"] == found["suspected too"] == found["drifts too"] == 1.0
    assert found["nothing"] == pytest.approx(2 / 3, abs=0.001)
    late = {**FINDERS, "confirmed": lambda values: [level_shifts.confirmed(values)[0] + 6]}
    monkeypatch.setattr(level_shifts, "FINDERS", late)
    assert means(folder)["confirmed"] == 0.5


def test_a_folder_that_is_no_checkout_is_refused(tmp_path) -> None:
    with pytest.raises(HistoryError, match="expected a checkout of TCPD"):
        list(read_series(tmp_path))
