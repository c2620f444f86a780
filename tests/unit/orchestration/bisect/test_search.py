"""The search of one list: what is asked, what is remembered, and what it ends with."""

import pytest

from hybridwatch.errors import BuildError
from hybridwatch.orchestration.bisect.question import (
    ALIVE,
    STARTS,
    ChangeDirection,
    ProbeOutcome,
    ProbeState,
)
from hybridwatch.orchestration.bisect.words import doubt_lines
from tests.unit.orchestration.bisect.made_up import (
    BAD,
    DEAD,
    NOT_UP,
    MadeUpMeter,
    a_bisect_search,
    a_list,
    counted,
)


def from_on(change, last, outcome):
    return {str(at): outcome for at in range(change, last + 1)}


@pytest.mark.parametrize("change", [1, 5, 8])
def test_first_commit_that_breaks_a_contract_is_found(tmp_path, change):
    measurer = MadeUpMeter(from_on(change, 8, BAD))
    found = a_bisect_search(tmp_path, measurer).search(a_list(8))
    assert found.is_found
    assert found.question.metric == "contract.wrong_tokens"
    assert [one.key for one in found.pair] == [str(change - 1), str(change)]
    assert len(measurer.asked) == 5  # both ends, and three of seven


def test_count_between_those_of_the_ends_is_not_as_the_good_end(tmp_path):
    measurer = MadeUpMeter(from_on(3, 8, BAD) | {"4": counted(wrong_tokens=1)})
    assert a_bisect_search(tmp_path, measurer).search(a_list(8)).pair[1].key == "3"


def test_fix_is_where_the_contract_holds_again(tmp_path):
    measurer = MadeUpMeter({str(at): BAD for at in range(6)})
    found = a_bisect_search(tmp_path, measurer, wanted=ChangeDirection.FIX).search(a_list(8))
    assert found.pair[1].key == "6"
    assert (
        not a_bisect_search(tmp_path / "b", measurer).search(a_list(8)).is_found
    )  # nothing got worse


def test_engine_that_no_longer_starts_is_not_one_that_dies_in_the_scenario(tmp_path):
    measurer = MadeUpMeter(from_on(6, 8, NOT_UP) | {"4": DEAD, "5": DEAD})
    found = a_bisect_search(tmp_path, measurer).search(a_list(8))
    assert (found.question.metric, found.pair[1].key) == (STARTS, "6")
    found = a_bisect_search(tmp_path / "b", measurer, metric=ALIVE).search(a_list(8))
    assert found.pair[1].key == "4"
    dying = MadeUpMeter(from_on(6, 8, DEAD))
    found = a_bisect_search(tmp_path / "c", dying).search(a_list(8))
    assert (found.question.metric, found.pair[1].key) == (ALIVE, "6")


def test_engine_without_a_measurement_lives(tmp_path):
    dumb = ProbeOutcome(state=ProbeState.NO_VALUE, reason="no occasion")
    measurer = MadeUpMeter(from_on(6, 8, DEAD) | {"4": dumb, "5": dumb})
    found = a_bisect_search(tmp_path, measurer, metric=ALIVE).search(a_list(8))
    assert found.pair[1].key == "6"
    counting = MadeUpMeter(from_on(6, 8, BAD) | {"4": dumb, "5": dumb})
    found = a_bisect_search(tmp_path / "b", counting).search(a_list(8))
    assert [one.key for one in found.suspects] == ["4", "5", "6"]
    ends = MadeUpMeter({"8": dumb})
    found = a_bisect_search(tmp_path / "c", ends, metric="contract.wrong_tokens").search(a_list(8))
    assert found.why_not.endswith("0 -> gave no measurement: no occasion")
    found = a_bisect_search(tmp_path / "d", ends).search(a_list(8))
    assert found.why_not.endswith("measured -> gave no measurement: no occasion")


def test_commits_that_say_nothing_are_skipped_and_named(tmp_path):
    measurer = MadeUpMeter({**from_on(5, 8, BAD), "4": DEAD})
    found = a_bisect_search(tmp_path, measurer).search(a_list(8))
    assert [one.key for one in found.suspects] == ["4", "5"]
    assert (found.is_found, found.is_exhausted) == (False, True)
    assert found.place.skipped == {4}


def test_build_that_cannot_be_made_is_skipped_and_costs_no_engine(tmp_path):
    def make(label):
        if label == "4":
            raise BuildError("csrc differs")
        return label

    measurer = MadeUpMeter(from_on(3, 8, BAD))
    found = a_bisect_search(tmp_path, measurer).search(a_list(8, made=make))
    assert found.is_found
    assert "4" not in measurer.asked
    assert [p.outcome.reason for p in found.measured if p.at == 4] == ["csrc differs"]


def test_end_that_cannot_be_had_ends_the_search(tmp_path):
    measurer = MadeUpMeter({"8": ProbeOutcome(state=ProbeState.NOT_HAD, reason="not installed")})
    with pytest.raises(BuildError, match="8 title: not installed"):
        a_bisect_search(tmp_path, measurer).search(a_list(8))


def test_change_that_is_not_there_is_said(tmp_path):
    found = a_bisect_search(tmp_path, MadeUpMeter(), metric="contract.wrong_tokens").search(
        a_list(8)
    )
    assert found.question is None
    assert "contract.wrong_tokens did not change" in found.why_not
    assert "0 -> 0" in found.why_not


def test_metric_that_is_named_is_looked_at_alone(tmp_path):
    both = counted(wrong_tokens=7, states_off=2)
    measurer = MadeUpMeter(from_on(3, 8, BAD) | from_on(6, 8, both) | {"0": counted(states_off=0)})
    measurer.outcomes |= {str(at): counted(wrong_tokens=at > 2, states_off=0) for at in range(6)}
    found = a_bisect_search(tmp_path, measurer, metric="contract.states_off").search(a_list(8))
    assert found.pair[1].key == "6"


def test_search_goes_on_with_what_was_measured(tmp_path):
    outcomes = from_on(5, 8, BAD)

    class StoppedError(Exception):
        pass

    class Stopping(MadeUpMeter):
        def contracts(self, label):
            if len(self.asked) == 3:
                raise StoppedError
            return super().contracts(label)

    with pytest.raises(StoppedError):
        a_bisect_search(tmp_path, Stopping(outcomes)).search(a_list(8))
    rest = MadeUpMeter(outcomes)
    assert a_bisect_search(tmp_path, rest).search(a_list(8)).pair[1].key == "5"
    assert len(rest.asked) == 2
    again = MadeUpMeter(outcomes)
    assert a_bisect_search(tmp_path, again).search(a_list(8)).pair[1].key == "5"
    assert again.asked == []


def test_search_without_time_names_a_range(tmp_path):
    now = iter(range(1000))
    measurer = MadeUpMeter(from_on(5, 8, BAD))
    found = a_bisect_search(tmp_path, measurer, seconds=9, clock=lambda: float(next(now))).search(
        a_list(8)
    )
    assert not found.is_exhausted
    assert "5" in [one.key for one in found.suspects]


def test_slower_commit_is_found_by_times(tmp_path):
    measurer = MadeUpMeter(slower={str(at): 0.06 for at in range(11, 21)})
    found = a_bisect_search(tmp_path, measurer).search(a_list(20))
    assert found.question.metric == "tpot"
    assert found.is_found
    assert found.pair[1].key == "11"
    assert found.belief.best().mass >= 0.95


def test_faster_commit_is_no_regression(tmp_path):
    measurer = MadeUpMeter(slower={str(at): -0.06 for at in range(11, 21)})
    assert a_bisect_search(tmp_path, measurer, metric="tpot").search(a_list(20)).question is None
    found = a_bisect_search(
        tmp_path / "b", measurer, metric="tpot", wanted=ChangeDirection.FIX
    ).search(a_list(20))
    assert found.pair[1].key == "11"


def test_change_within_the_noise_is_none(tmp_path):
    measurer = MadeUpMeter(slower={"20": 0.004})
    found = a_bisect_search(tmp_path, measurer, metric="tpot").search(a_list(20))
    assert found.question is None
    assert len(measurer.asked) == 6


def test_pair_that_does_not_differ_side_by_side_is_searched_on(tmp_path):
    measurer = MadeUpMeter(slower={str(at): 0.06 for at in range(11, 21)})
    search = a_bisect_search(tmp_path, measurer, metric="tpot")
    found = search.search(a_list(20))
    assert found.pair[1].key == "11"
    asked = len(measurer.asked)
    again = search.reconsider(found, [0.0] * 20)
    assert len(measurer.asked) > asked
    assert again.measured[: len(found.measured)] == found.measured
    assert again.pair == found.pair


def test_commit_that_does_not_start_leaves_a_range_of_times(tmp_path):
    measurer = MadeUpMeter({"10": DEAD}, slower={str(at): 0.06 for at in range(11, 21)})
    found = a_bisect_search(tmp_path, measurer, metric="tpot").search(a_list(20))
    assert [one.key for one in found.suspects] == ["10", "11"]
    assert found.is_exhausted


def test_sessions_on_a_restless_machine_are_reported_with_what_they_found(tmp_path):
    class Restless(MadeUpMeter):
        def times(self, *args):
            quiet = super().times(*args)
            return quiet.model_copy(update={"doubts": ("The machine was restless.",)})

    for measurer, told in ((Restless, True), (MadeUpMeter, False)):
        slower = dict.fromkeys(map(str, range(4, 9)), 0.1)
        search = a_bisect_search(
            tmp_path / measurer.__name__, measurer(slower=slower), metric="tpot"
        )
        found = search.search(a_list(8))
        n = len(found.measured)
        line = f"doubt:   {n} of {n} sessions: The machine was restless."
        assert list(doubt_lines(found)) == ([line] if told else [])
