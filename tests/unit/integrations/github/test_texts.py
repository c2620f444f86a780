"""What people read on a pull request, as it was reviewed."""

import json
from datetime import UTC, datetime
from importlib.metadata import version

from hybridwatch.integrations.github.grammar import HELP
from hybridwatch.integrations.github.our_comment import (
    CommentRequest,
    OurComment,
    RequestQueue,
    RequestState,
    read_comment,
    write_comment,
)
from hybridwatch.integrations.github.suspicion import answer_text, suspicion_text
from hybridwatch.orchestration.bisect.journal import SearchAnswer
from hybridwatch.reports.pull_request import ChangeNews
from tests.github.test_suspects import answer, commit

AT = datetime(2026, 11, 24, 9, 0, tzinfo=UTC)
LINK = "https://github.test/octo/engine/actions/runs/42"
FOUND = answer(
    answer={
        "good": "a" * 40,
        "bad": "c" * 40,
        "culprit": None,
        "suspects": [commit("b" * 40, "One row less (#12)"), commit("c" * 40, "Another row")],
    },
    confirmed=False,
    repeat="hybridwatch bisect smoke/dummy-run --good aaaaaaa --bad ccccccc --anew",
)


def entry(
    number: int, words: str, state: RequestState, note: str = "", link: str = ""
) -> CommentRequest:
    return CommentRequest(
        comment=number, words=words, who="ada", at=AT, state=state, note=note, link=link
    )


def test_a_queue_next_to_a_verdict_reads_as_reviewed(golden) -> None:
    queue = RequestQueue()
    for one in (
        entry(1, "help", RequestState.DONE),
        entry(2, "run smoke/x|y", RequestState.REFUSED, "no such scenario: smoke/x|y; ask @team"),
        entry(3, "run smoke", RequestState.QUEUED, "5 jobs in the queue"),
        entry(
            4, "bisect smoke/dummy-run --good 0.27.1 --bad 0.32.0", RequestState.RUNNING, link=LINK
        ),
    ):
        queue = queue.having(one)
    text = write_comment(OurComment("**Slower: by 8 %.**\n\nMore.", HELP, queue, ChangeNews.BAD))
    golden.check("requests/queue.md", text)
    assert read_comment(text).queue == queue


def test_what_a_search_found_reads_as_reviewed(golden) -> None:
    found = SearchAnswer.model_validate_json(json.dumps(FOUND))
    golden.check("requests/search.md", f"{answer_text(found)}\n")
    text = suspicion_text(found, found.suspects[1])
    golden.check("requests/suspect.md", f"{text.replace(version('hybridwatch'), 'VERSION')}\n")
    unchanged = found.model_copy(update={"answer": None})
    assert answer_text(unchanged).startswith("The change is not there")
