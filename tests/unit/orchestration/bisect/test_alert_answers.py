"""The answers to alerts: the words of one, which one is over, and a file that is broken."""

from typing import Any

import pytest

from hybridwatch.analysis.verdict import Verdict
from hybridwatch.orchestration.bisect.alert_answers import (
    ANSWERS,
    answer_line,
    is_final,
    keep_answer,
    read_answers,
)
from hybridwatch.orchestration.bisect.journal import SearchAnswer
from tests.unit.analysis.alerts.builders import alert_of

OLD, NEW = "a" * 40, "b" * 40
LATE = (
    "ttft changed between aaaaaaaaaa and bbbbbbbbbb, 2 left; the time was up, and the next night "
    "goes on"
)
NAMED = {"name": NEW, "title": "Break it (#7)"}
OTHER = {"name": "c" * 40, "title": "Other"}


def an_answer(holds: bool | None = True, *suspects: dict[str, str], **changes: Any) -> SearchAnswer:
    """What a search of two commits found; ``holds`` is how the pair was, measured again."""
    facts: dict[str, Any] = {
        "schema_version": 1,
        "scenario": "smoke/x",
        "confirmed": bool(holds),
        "answer": {
            "metric": "ttft",
            "find": "regression",
            "effect": None,
            "interval": None,
            "certainty": None,
            "good": OLD,
            "bad": NEW,
            "culprit": suspects[0] if len(suspects) == 1 else None,
            "suspects": suspects,
        },
        "confirmation": None if holds is None else {"holds": holds, "seen": "0 -> 7"},
        "repeat": None,
    }
    return SearchAnswer.model_validate({**facts, **changes})


@pytest.mark.parametrize(
    ("found", "line", "over"),
    [
        (
            an_answer(True, NAMED),
            "ttft changed with bbbbbbbbbb Break it (#7); measured again, confirmed: 0 -> 7",
            True,
        ),
        (
            an_answer(False, NAMED),
            "ttft changed with bbbbbbbbbb Break it (#7); measured again, NOT confirmed: 0 -> 7",
            True,
        ),
        (
            an_answer(None, NAMED, OTHER),
            LATE,
            False,
        ),
        (
            an_answer(None, answer=None),
            "the ends did not differ when they were measured again",
            True,
        ),
        (an_answer(None, answer=None, why_not="no build"), "not searched: no build", False),
    ],
)
def test_an_answer_in_a_line(found: SearchAnswer, line: str, over: bool) -> None:
    assert answer_line(found) == line
    assert is_final(found) is over


def test_a_broken_file_is_no_answer(tmp_path) -> None:
    alert = alert_of(Verdict.REGRESSION)
    kept = an_answer(True, NAMED)
    assert keep_answer(tmp_path, alert, kept.model_dump(mode="json")) == kept
    run = alert.bad.run_id
    assert list(read_answers(tmp_path, [run, "0badcafe"])) == [run]
    (path,) = (tmp_path / ANSWERS).glob("*.json")
    path.write_text("{")
    assert read_answers(tmp_path, [run]) == {run: []}
