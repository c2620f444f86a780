"""``hybridwatch answer``: from a comment on a pull request to the queue, over real HTTP."""

import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hybridwatch.cli import answer as verb
from hybridwatch.engines.builds import DEFAULT_BUILD
from hybridwatch.integrations.github import answering, our_comment
from hybridwatch.integrations.github.answering import CommentEvent
from hybridwatch.integrations.github.client import PullRequest, RepositoryAccess
from hybridwatch.integrations.github.our_comment import (
    MOST_OPEN,
    CommentRequest,
    OurComment,
    RequestQueue,
    RequestState,
    queue_in,
    read_comment,
    write_comment,
)
from hybridwatch.records.store import write_run
from hybridwatch.reports.pull_request import LIMIT
from tests.builders import RECENT, a_comparison
from tests.command_line import run_verb
from tests.github.hub import BOT, HEAD, NUMBER, REPOSITORY, TOKEN, Hub
from tests.unit.integrations.github.test_grammar import KNOWN, against
from tests.waiting import LIMIT_S

PADDED = "contract.padded_rows_prefilling"
RUN = "@hybridwatch run smoke/padded-graph-rows"
ARGUMENTS = ["run", "smoke/padded-graph-rows", *("--build", DEFAULT_BUILD) * 2]


@pytest.fixture
def bot(tmp_path, monkeypatch) -> Callable[..., Any]:
    """Call the verb with an event; gives what was left for the other job."""
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.test")
    monkeypatch.setenv("GITHUB_REPOSITORY", REPOSITORY)
    monkeypatch.setenv("GITHUB_RUN_ID", "42")

    def run(hub: Hub, event: dict[str, Any], *more: str) -> dict[str, Any] | None:
        monkeypatch.setenv("GITHUB_API_URL", hub.base)
        file, job = tmp_path / "event.json", tmp_path / "job.txt"
        file.write_text(json.dumps(event))
        job.unlink(missing_ok=True)
        words = ["answer", "comment", str(file), "--repo", REPOSITORY, "--job", str(job), *more]
        done = run_verb(*words, catch_exceptions=False)
        assert TOKEN not in done.output
        assert done.exit_code == 0, done.output
        if not job.exists():
            return None
        lines = dict(line.split("=", 1) for line in job.read_text().splitlines())
        return {**lines, "arguments": json.loads(lines["arguments"])}

    return run


def calls(hub: Hub) -> set[str]:
    return {f"{method} {re.sub('[0-9]+', 'N', path)}" for method, path, _ in hub.requests}


def states(hub: Hub) -> list[tuple[str, RequestState]]:
    (body,) = hub.bodies()
    return [(one.words, one.state) for one in queue_in(body).asked]


def test_who_may_write_asks_and_another_job_measures(contract, bot) -> None:
    assert bot(contract, contract.asks(RUN)) == {
        "arguments": ARGUMENTS,
        "head": HEAD,
    }
    (body,) = contract.bodies()
    assert body.startswith("<!-- hybridwatch asked -->\n**Requested here**\n")
    assert "| <code>run smoke/padded-graph-rows --build " in body
    assert "| ada | 2011-04-14 16:00 UTC | [running](https://github.test/octo/engine/" in body
    assert states(contract) == [(" ".join(ARGUMENTS), RequestState.RUNNING)]


@pytest.mark.parametrize(("login", "may"), [("ada", True), ("grace", True), ("mallory", False)])
def test_the_answer_of_the_published_interface_decides_who_may(contract, bot, login, may) -> None:
    assert (bot(contract, contract.asks(RUN, login)) is not None) is may
    home = f"/repos/{REPOSITORY}"
    asked = {f"GET {home}/issues/comments/N", f"GET {home}/collaborators/{login}/permission"}
    assert asked <= calls(contract) if may else asked == calls(contract)


# Whoever may not write gets nothing: no answer, no trace, and two questions to GitHub.


@pytest.mark.parametrize("login", ["mallory", "eve", "nobody"])
@pytest.mark.parametrize(
    "body", [RUN, "@hybridwatch help", "@hybridwatch nonsense", f"{RUN}\n{RUN}"]
)
def test_others_get_no_answer_at_all(hub, bot, login, body) -> None:
    assert bot(hub, hub.asks(body, login)) is None
    assert hub.bodies() == []
    assert [method for method, _, _ in hub.requests] == ["GET", "GET"]


@pytest.mark.parametrize(
    "body", ["InterimAnalyses good", "@hybridwatch2 run smoke", f"{RUN}\n\n{'a ' * 4096}"]
)
def test_what_speaks_to_nobody_costs_not_even_a_question(hub, bot, body) -> None:
    assert bot(hub, hub.asks(body)) is None
    assert hub.requests == []


@pytest.mark.parametrize("body", [f"> {RUN}", f"```\n{RUN}\n```", f"cc {RUN}", f"$$\n{RUN}\n$$"])
def test_what_only_names_the_bot_changes_nothing(hub, bot, body) -> None:
    assert bot(hub, hub.asks(body)) is None
    assert hub.bodies() == []


def test_nothing_that_a_stranger_wrote_is_parsed(hub, bot, monkeypatch) -> None:
    """A parser of Markdown can be kept busy, and its input is anybody's."""
    parsed: list[str] = []
    monkeypatch.setattr(answering, "addressed_to_us", parsed.extend)
    for login in ("mallory", "ada"):
        assert bot(hub, hub.asks(RUN, login)) is None
        assert bool(parsed) is (login == "ada")


def hostile(hub: Hub, login: str) -> None:
    """Let hypothesis make comments up, and look at what each of them makes the bot do."""
    client = RepositoryAccess(TOKEN, hub.base)

    def ask(body: str) -> None:
        hub.comments.clear()
        comment = hub.add(body, login, "User")
        claim = CommentEvent.model_validate(hub.event(comment))
        assert answering.take(client, REPOSITORY, claim, lambda: KNOWN, ()) is None
        assert all(method == "GET" for method, _, _ in hub.requests)

    against(ask)


def test_500_hostile_comments_by_strangers_change_nothing(hub) -> None:
    hostile(hub, "mallory")
    assert {path.rpartition("/")[2] for _, path, _ in hub.requests} > {"permission"}


def test_a_bot_that_lets_strangers_in_would_be_seen(hub, monkeypatch) -> None:
    """Planted: the same comments, and everybody may."""
    monkeypatch.setattr(answering, "_may_write", lambda *_: True)
    with pytest.raises(AssertionError):
        hostile(hub, "mallory")


# The event is a claim.


def test_an_edited_comment_does_not_run_with_its_authors_rights(hub, bot) -> None:
    event = hub.asks("InterimAnalyses good")
    hub.comments[0]["body"] = RUN
    event["comment"]["body"] = RUN
    event["action"] = "edited"
    assert bot(hub, event) is None
    assert hub.requests == []


def test_a_comment_that_was_edited_since_is_not_run(hub, bot) -> None:
    event = hub.asks("@hybridwatch help")
    hub.comments[0]["body"] = RUN
    assert bot(hub, event) is None
    event["comment"]["body"] = f"{RUN} --known-bad"
    assert bot(hub, event) is None
    assert hub.bodies() == []


def test_a_claim_that_is_not_held_against_the_comment_would_be_run(hub, bot, monkeypatch) -> None:
    """Planted: the event is believed."""
    event = hub.asks("@hybridwatch help")
    event["comment"]["body"] = RUN
    monkeypatch.setattr(answering, "_is_as_claimed", lambda *_: True)
    assert bot(hub, event) is not None


@pytest.mark.parametrize(
    "change",
    [
        lambda event: event["comment"]["user"].update(id=4711),
        lambda event: event["issue"].update(number=NUMBER + 1),
        lambda event: event["comment"].update(id=99),
        lambda event: event["issue"].pop("pull_request"),
    ],
    ids=["author", "pull request", "comment", "an issue"],
)
def test_an_event_that_says_otherwise_than_github_runs_nothing(hub, bot, change) -> None:
    event = hub.asks(RUN)
    change(event)
    assert bot(hub, event) is None
    assert hub.bodies() == []


def test_a_name_that_changed_hands_does_not_bring_its_rights(hub, bot) -> None:
    """Between the two questions somebody else took the name of the author."""
    event = hub.asks(RUN)
    hub.numbers["ada"] = 4711
    assert bot(hub, event) is None
    assert hub.bodies() == []


def test_bots_are_not_answered_and_so_never_answer_each_other(hub, bot) -> None:
    hub.rights[BOT] = hub.rights["other[bot]"] = "admin"
    for login in (BOT, "other[bot]"):
        assert bot(hub, hub.event(hub.add(RUN, login, "Bot"))) is None
    assert len(hub.comments) == 2


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"no JSON", "file: expected an event issue_comment"),
        (b'{"action": "created"}', "comment.id: expected an event issue_comment"),
        (b"\xff", "file: expected an event issue_comment"),
    ],
)
def test_a_file_that_is_no_event_is_a_wrong_call(tmp_path, monkeypatch, content, told) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    file = tmp_path / "event.json"
    file.write_bytes(content)
    assert told in run_verb("answer", "comment", file, "--repo", REPOSITORY, status=2).stderr


def test_an_event_of_another_repository_is_a_wrong_call(hub, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    event = hub.asks(RUN) | {"repository": {"full_name": "mallory/engine"}}
    (tmp_path / "event.json").write_text(json.dumps(event))
    words = ["answer", "comment", str(tmp_path / "event.json"), "--repo", REPOSITORY]
    done = run_verb(*words, status=2)
    assert "repository.full_name: expected octo/engine, found 'mallory/engine'" in done.stderr
    assert hub.requests == []


# The queue.


def test_a_comment_that_comes_twice_is_one_command(hub, bot) -> None:
    event = hub.asks(RUN)
    assert bot(hub, event) is not None
    assert bot(hub, event) is None
    assert len(states(hub)) == 1


def test_a_bot_without_a_memory_would_measure_twice(hub, bot, monkeypatch) -> None:
    """Planted: what was asked before is not looked at."""
    monkeypatch.setattr(answering, "read_comment", lambda _: read_comment(None))
    event = hub.asks(RUN)
    assert bot(hub, event) is not None
    assert bot(hub, event) is not None


def test_what_was_not_understood_is_one_line_with_the_closest_match(hub, bot) -> None:
    assert bot(hub, hub.asks("@hybridwatch run smoke/padded-graph-row")) is None
    assert bot(hub, hub.asks(f"{RUN}\n{RUN}")) is None
    (body,) = hub.bodies()
    assert states(hub)[0] == ("run smoke/padded-graph-row", RequestState.REFUSED)
    assert "did you mean smoke/padded-graph-rows?" in body
    assert "refused: expected one command in a comment, found 2" in body


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("pushed_at", "2011-04-14T16:00:49Z", "the branch was pushed to after the comment"),
        ("pushed_at", None, "the branch was pushed to after the comment"),
        ("has_branch", False, "the branch was pushed to after the comment"),
        ("state", "closed", "the pull request is closed"),
    ],
)
def test_code_that_the_person_may_not_have_seen_is_not_measured(
    hub, bot, name, value, told
) -> None:
    setattr(hub, name, value)
    assert bot(hub, hub.asks(RUN)) is None
    assert told in hub.bodies()[0]
    assert states(hub)[0][1] is RequestState.REFUSED


def test_so_many_wait_and_no_more(hub, bot) -> None:
    given_on = [bot(hub, hub.asks(RUN)) for _ in range(MOST_OPEN + 1)]
    assert [one is None for one in given_on] == [False] * MOST_OPEN + [True]
    assert states(hub)[-1][1] is RequestState.REFUSED
    assert f"{MOST_OPEN} commands wait or run already" in hub.bodies()[0]


def test_a_job_that_never_told_its_end_holds_no_place_for_ever() -> None:
    queue = RequestQueue()
    for number in range(1, MOST_OPEN + 1):
        entry = CommentRequest(
            comment=number, words="run", who="ada", at=RECENT, state=RequestState.RUNNING
        )
        queue = queue.having(entry)
    assert queue.is_full(RECENT + timedelta(hours=23))
    assert not queue.is_full(RECENT + timedelta(hours=24))


def test_a_guard_that_is_left_out_would_run_what_nobody_saw(hub, bot, monkeypatch) -> None:
    """Planted: hindrances are not looked for."""
    hub.pushed_at = "2011-04-14T16:00:49Z"
    monkeypatch.setattr(answering, "_hindrance", lambda *_, **__: "")
    assert bot(hub, hub.asks(RUN)) is not None


def test_the_queue_is_bounded_and_what_it_forgot_is_not_run_again(hub, bot, monkeypatch) -> None:
    monkeypatch.setattr(our_comment, "MOST_KEPT", 3)
    first = hub.asks("@hybridwatch help")
    bot(hub, first)
    for _ in range(4):
        bot(hub, hub.asks("@hybridwatch nonsense"))
    assert len(states(hub)) == 3
    before = hub.bodies()
    assert bot(hub, first) is None
    assert hub.bodies() == before


def race(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> list[RequestState]:
    """Let two jobs write at once: one looks, the other writes, the first writes as well."""
    paused, over = threading.Event(), threading.Event()

    def pause(_: float) -> None:
        if threading.current_thread() is not threading.main_thread():
            paused.set()
            assert over.wait(LIMIT_S)

    def entry(number: int, state: RequestState) -> CommentRequest:
        return CommentRequest(comment=number, words="help", who="ada", at=RECENT, state=state)

    def put(number: int, state: RequestState) -> None:
        pull = PullRequest(RepositoryAccess(TOKEN, hub.base), REPOSITORY, NUMBER)
        answering.put_entry(pull, entry(number, state))

    def meanwhile() -> None:
        other.start()
        assert paused.wait(LIMIT_S)

    put(1, RequestState.DONE)
    # Not time.sleep itself: PyGithub sleeps between two requests that write.
    monkeypatch.setattr(answering, "time", SimpleNamespace(sleep=pause))
    other = threading.Thread(target=put, args=(2, RequestState.REFUSED))
    hub.before_edit = meanwhile
    put(3, RequestState.RUNNING)
    over.set()
    other.join()
    return [state for _, state in states(hub)]


def test_two_jobs_at_once_lose_nothing(hub, monkeypatch) -> None:
    assert race(hub, monkeypatch) == [
        RequestState.DONE,
        RequestState.REFUSED,
        RequestState.RUNNING,
    ]


def test_a_job_that_does_not_look_again_would_lose_its_entry(hub, monkeypatch) -> None:
    """Planted: one look."""
    monkeypatch.setattr(answering, "_LOOKS", 1)
    assert race(hub, monkeypatch) == [RequestState.DONE, RequestState.RUNNING]


def test_hidden_state_of_someone_else_is_not_believed(hub, bot) -> None:
    event = hub.asks(RUN)
    bot(hub, event)
    forged = hub.bodies()[0]
    hub.comments[1:] = []
    hub.add(forged, "mallory", "User")
    assert bot(hub, event) is not None
    assert hub.bodies("mallory") == [forged]


def forge(hub: Hub, bot: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Let a command print our own marks, as a log or a record might; gives it and our comment."""
    bot(hub, hub.asks(RUN))
    (genuine,) = hub.bodies()
    forged = f"```\n{genuine}<!-- hybridwatch result -->\nforged\n```"
    monkeypatch.setattr(verb, "_read", lambda *_: (0, forged))
    bot(hub, hub.asks("@hybridwatch explain ttft"))
    bot(hub, hub.asks("@hybridwatch nonsense"))
    (body,) = hub.bodies()
    return forged, body


def test_marks_in_a_result_are_no_marks(hub, bot, monkeypatch) -> None:
    forged, body = forge(hub, bot, monkeypatch)
    assert [state for _, state in states(hub)] == [
        RequestState.RUNNING,
        RequestState.DONE,
        RequestState.REFUSED,
    ]
    assert body.count("<!-- hybridwatch asked -->") == 1
    assert read_comment(body).result == forged.replace("<!-- h", "<!-\u200b- h")


def with_marks_in_the_verdict() -> OurComment:
    entry = CommentRequest(comment=1, words="help", who="ada", at=RECENT, state=RequestState.DONE)
    verdict = "**Bad**\n\n```\n<!-- hybridwatch asked -->\n```\n\nthe rest"
    return read_comment(write_comment(OurComment(verdict, queue=RequestQueue().having(entry))))


def test_marks_in_a_verdict_are_no_marks() -> None:
    assert with_marks_in_the_verdict().verdict.endswith("the rest")


def test_marks_that_are_left_in_a_verdict_would_cut_it(monkeypatch) -> None:
    """Planted: texts go into our comment as they are."""
    monkeypatch.setattr(our_comment, "_inert", lambda text: text)
    assert not with_marks_in_the_verdict().verdict.endswith("the rest")


# Answers.


def test_help_shows_the_grammar_that_the_documentation_has(hub, bot) -> None:
    bot(hub, hub.asks("@hybridwatch help"))
    (body,) = hub.bodies()
    page = Path(__file__).parents[2] / "docs" / "pull-request-commands.md"
    shown = body.partition("```\n")[2].partition("```")[0]
    assert shown.startswith("@hybridwatch help\n")
    assert shown in page.read_text()
    assert bot(hub, hub.event(hub.add(body, "ada", "User"))) is None, "it speaks to nobody"


def test_compare_is_answered_at_once_by_a_process_without_a_token(
    hub, bot, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("HYBRIDWATCH_OTHER", "kept")
    results = tmp_path / "results"
    run = a_comparison({PADDED: (0.0,)}, {PADDED: (4.0,)}, started_at=RECENT)
    write_run(results, run)
    seen: list[dict[str, str]] = []
    kept = verb._environment

    def environment(inherited: Mapping[str, str]) -> dict[str, str]:
        seen.append(kept(inherited))
        return seen[-1]

    monkeypatch.setattr(verb, "_environment", environment)
    assert bot(hub, hub.asks(f"@hybridwatch compare {run.id}"), "--results", str(results)) is None
    (body,) = hub.bodies()
    assert states(hub) == [(f"compare {run.id}", RequestState.DONE)]
    assert "padded_rows_prefilling" in body
    assert "regression" in body.lower()
    assert not any(TOKEN in value for value in seen[0].values())
    assert seen[0]["HYBRIDWATCH_OTHER"] == "kept"


def test_a_reading_that_fails_is_reported(hub, bot, tmp_path) -> None:
    bot(hub, hub.asks("@hybridwatch explain ttft"), "--results", str(tmp_path / "none"))
    assert states(hub) == [("explain latest ttft", RequestState.FAILED)]


def test_nothing_is_measured_where_no_other_job_waits(hub, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_API_URL", hub.base)
    (tmp_path / "event.json").write_text(json.dumps(hub.asks(RUN)))
    words = ["answer", "comment", str(tmp_path / "event.json"), "--repo", REPOSITORY]
    run_verb(*words, catch_exceptions=False, status=0)
    assert states(hub)[0][1] is RequestState.REFUSED


# The result, and the verdict that `hybridwatch comment` writes.


def close(hub: Hub, *more: str, status: int | None = None) -> Any:
    words = ["answer", "result", "--repo", REPOSITORY, "--pr", str(NUMBER), *more]
    return run_verb(*words, catch_exceptions=False, status=status)


@pytest.fixture
def records(tmp_path: Path) -> Path:
    run = a_comparison({PADDED: (0.0,)}, {PADDED: (4.0,)}, started_at=RECENT)
    write_run(tmp_path / "records", run)
    return tmp_path / "records"


def test_the_result_stands_below_the_queue(contract, bot, records) -> None:
    event = contract.asks(RUN)
    bot(contract, event)
    number = str(event["comment"]["id"])
    done = close(contract, "--comment", number, "--state", "done", "--records", str(records))
    assert done.exit_code == 0, done.output
    (body,) = contract.bodies()
    assert states(contract) == [(" ".join(ARGUMENTS), RequestState.DONE)]
    result = body.partition("<!-- hybridwatch result -->\n")[2]
    assert "A contract broke" in result.split("\n")[2]
    assert "not judged: missing" not in result, "what the policy expects does not matter here"
    assert contract.checks == []


def test_a_result_of_nobodys_command_is_an_error(hub, bot) -> None:
    bot(hub, hub.asks(RUN))
    done = close(hub, "--comment", "4711", "--state", "done", status=2)
    assert "expected a command in comment 4711, found none" in done.stderr


def test_verdict_and_queue_live_in_one_comment(hub, bot, records, tmp_path) -> None:
    policy = tmp_path / "gate.toml"
    policy.write_text('[[rule]]\nmetric = "*"\naction = "block"\n')
    judge = ["comment", "--repo", REPOSITORY, "--pr", str(NUMBER), "--policy", str(policy)]
    event = hub.asks(RUN)
    bot(hub, event)
    for what in ("edited", "unchanged"):
        done = run_verb(*judge, "--results", records, catch_exceptions=False, status=0)
        assert f"comment: {what}" in done.output
    close(hub, "--comment", str(event["comment"]["id"]), "--state", "failed", "--note", "it died")
    bot(hub, hub.asks("@hybridwatch help"))
    (body,) = hub.bodies()
    assert body.startswith("**A contract broke")
    assert states(hub) == [
        (" ".join(ARGUMENTS), RequestState.FAILED),
        ("help", RequestState.DONE),
    ]
    assert "failed](https://github.test/octo/engine/actions/runs/42): it died" in body
    assert body.endswith("<!-- hybridwatch: bad -->\n")


def test_too_long_a_comment_loses_its_result_first(hub, bot, monkeypatch) -> None:
    bot(hub, hub.asks("@hybridwatch help"))
    ours = next(one for one in hub.comments if one["user"]["login"] == BOT)
    now = read_comment(ours["body"])
    long = replace(now, verdict="**Verdict**\n" + "x" * (LIMIT - 2000), result="y" * 9000)
    ours["body"] = verdict = write_comment(long)
    assert "yyy" not in verdict
    assert len(verdict.encode()) <= LIMIT
    longer = replace(now, verdict="**Verdict**\n" + "x" * LIMIT)
    assert write_comment(longer).startswith("**Verdict**\n\n<!-- hybridwatch asked")
