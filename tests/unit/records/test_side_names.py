"""Short names of sides: labels as they are while they fit, else what tells the sides apart."""

import pytest

from hybridwatch.records.role import LONGEST, side_names
from hybridwatch.scenarios.fixes import FIXES

LONG = "cpu-0.27.1~all-cache-spec-decode-anchor+prev-step-anchor+conv-anchor+block-end-states"
HEALTHY = "cpu-0.27.1+prev-step-anchor+conv-anchor+block-end-states"


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ((HEALTHY, LONG), ("released + 3 fixes", "without anchor")),
        (("cpu-0.27.1", LONG), ("released", "without anchor, with 3 fixes")),
        (("cpu-0.28.0", LONG), ("cpu-0.28.0", "cpu-0.27.1 without anchor, with 3 fixes")),
        ((LONG,), ("cpu-0.27.1 + 3 fixes, 1 out",)),
        ((LONG, LONG), ("cpu-0.27.1 + 3 fixes, 1 out",) * 2),
    ],
)
def test_long_labels_go_by_what_tells_them_apart(labels, names) -> None:
    assert side_names(labels) == names


def test_labels_that_fit_stay_as_they_are() -> None:
    labels = ("cpu-0.27.1", "cpu-0.27.1~padded-rows-prefilling")
    assert side_names(labels) == labels


@pytest.mark.parametrize("fix", FIXES)
def test_every_known_bad_side_has_a_short_name_of_its_own(fix) -> None:
    base = "a-build-with-quite-a-long-name-of-its-own-0.27.1"
    healthy, bad = side_names((f"{base}+conv-anchor", f"{base}+conv-anchor~{fix}"))
    assert healthy != bad
    assert len(bad) <= LONGEST


def test_names_that_would_not_tell_sides_apart_are_not_used() -> None:
    one = f"cpu-0.27.1{''.join(f'+{fix}' for fix in FIXES[:5])}"
    other = f"cpu-0.27.1{''.join(f'+{fix}' for fix in FIXES[5:10])}"
    assert side_names((one, other)) == (one, other)
