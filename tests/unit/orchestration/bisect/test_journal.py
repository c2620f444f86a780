"""The state file of a search."""

import pytest

from hybridwatch.errors import RecordError
from hybridwatch.orchestration.bisect.journal import open_journal, sole_journal
from hybridwatch.orchestration.bisect.question import ProbeOutcome, ProbeState
from tests.unit.orchestration.bisect.made_up import BAD, GOOD


def test_second_measurement_with_noise_is_another_one(tmp_path):
    first = open_journal(tmp_path, "smoke/x", {"ends": "a b"}, discard=False)
    assert first.outcome("a", lambda: GOOD, has_noise=True) == GOOD
    assert first.outcome("a", lambda: BAD, has_noise=True) == BAD
    again = open_journal(tmp_path, "smoke/x", {"ends": "a b"}, discard=False)
    assert [again.outcome("a", pytest.fail, has_noise=True) for _ in range(2)] == [GOOD, BAD]
    assert (again.kept, again.fresh) == (2, 0)


def test_measurement_without_noise_is_made_once(tmp_path):
    journal = open_journal(tmp_path, "smoke/x", {"ends": "a b"}, discard=False)
    assert journal.outcome("a", lambda: GOOD) == GOOD
    assert journal.outcome("a", pytest.fail) == GOOD
    assert journal.fresh == 1


def test_another_question_has_another_file_and_again_forgets(tmp_path):
    first = open_journal(tmp_path, "smoke/x", {"ends": "a b"}, discard=False)
    first.outcome("a", lambda: GOOD)
    assert open_journal(tmp_path, "smoke/x", {"ends": "a c"}, discard=False).kept == 0
    assert open_journal(tmp_path, "smoke/x", {"ends": "a b"}, discard=True).kept == 0
    assert not first.path.exists()


def test_digits_are_those_of_the_place_also_when_it_is_begun_again(tmp_path):
    def digits(results, ends, discard=False):
        return open_journal(tmp_path / results, "smoke/x", {"ends": ends}, discard=discard).digits

    assert digits("one", "a b") == digits("one", "a b", discard=True)
    assert len({digits("one", "a b"), digits("one", "a c"), digits("two", "a b")}) == 3


def test_two_calls_are_not_at_one_search_at_once(tmp_path):
    def opened(ends):
        return sole_journal(tmp_path, "smoke/x", {"ends": ends}, discard=False)

    with opened("a b") as journal:
        journal.outcome("a", lambda: GOOD)
        with pytest.raises(RecordError, match=r"another call is at this search"), opened("a b"):
            pytest.fail("both are at it")
        with opened("a c") as other:
            assert other.kept == 0
    with opened("a b") as again:
        assert again.kept == 1


def test_file_that_is_damaged_is_refused_with_the_way_out(tmp_path):
    journal = open_journal(tmp_path, "smoke/x", {"ends": "a b"}, discard=False)
    journal.outcome("a", lambda: GOOD)
    journal.path.write_text(journal.path.read_text().replace('"measured"', '"meassured"'))
    with pytest.raises(RecordError, match=r"outcomes\.a\.0\.state: .*--anew discards it"):
        open_journal(tmp_path, "smoke/x", {"ends": "a b"}, discard=False)


def test_measurement_that_is_interrupted_leaves_the_file_whole(tmp_path):
    journal = open_journal(tmp_path, "smoke/x", {"ends": "a b"}, discard=False)
    journal.outcome("a", lambda: GOOD)

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        journal.outcome("b", interrupted)
    again = open_journal(tmp_path, "smoke/x", {"ends": "a b"}, discard=False)
    assert again.kept == 1
    assert [path.name for path in journal.path.parent.iterdir()] == [journal.path.name]


def test_what_could_not_be_had_is_asked_for_again_by_the_next_call(tmp_path):
    gone = ProbeOutcome(state=ProbeState.NOT_HAD, reason="not installed")
    journal = open_journal(tmp_path, "smoke/x", {"ends": "a b"}, discard=False)
    assert journal.outcome("a", lambda: gone) == journal.outcome("a", pytest.fail) == gone
    again = open_journal(tmp_path, "smoke/x", {"ends": "a b"}, discard=False)
    assert again.outcome("a", lambda: GOOD) == GOOD
