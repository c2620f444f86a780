"""What the dashboard and the gauges call overdue, beside runs that are only examples."""

from datetime import timedelta

import pytest

from hybridwatch.analysis.policy import Policy
from hybridwatch.history.alerts import find_gaps
from hybridwatch.history.checkout import Checkout
from tests.builders import STARTED
from tests.unit.database.stores import add, opened

NOW = STARTED + timedelta(days=100)


@pytest.mark.parametrize("expected", [(), ("smoke/padded-graph-rows", "smoke/never")])
def test_an_example_is_never_overdue(tmp_path, expected):
    add(tmp_path, 0)
    checkout = Checkout(policy=Policy(expected=expected))
    assert find_gaps(tmp_path, opened(tmp_path).index, checkout, NOW)
    (tmp_path / "examples.txt").write_text("00000000\n")
    assert find_gaps(tmp_path, opened(tmp_path).index, checkout, NOW) == ()


def test_beside_an_example_what_was_measured_is(tmp_path):
    for number in range(2):
        add(tmp_path, number)
    (tmp_path / "examples.txt").write_text("00000000\n")
    (gap,) = find_gaps(tmp_path, opened(tmp_path).index, Checkout(), NOW)
    assert gap.last is not None
    assert gap.last.run_id == "00000001"


def test_a_file_of_examples_that_cannot_be_read_hides_nothing(tmp_path):
    add(tmp_path, 0)
    (tmp_path / "examples.txt").write_bytes(b"\xff")
    assert find_gaps(tmp_path, opened(tmp_path).index, Checkout(), NOW)
