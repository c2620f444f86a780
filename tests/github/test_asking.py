"""``hybridwatch answer``: from a comment on a pull request to the queue, over real HTTP."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, settings

from hybridwatch.cli import answer as verb
from hybridwatch.cli.main import cli
from hybridwatch.github import answering, asker
from hybridwatch.github import asked as ledger
from hybridwatch.github.asked import MOST_OPEN, Asked, State, queue_in
from hybridwatch.github.claim import Claim
from hybridwatch.github.door import Access
from hybridwatch.github.our_comment import read_comment
from hybridwatch.github.pull_request import PullRequest
from hybridwatch.report.pull_request import LIMIT
from hybridwatch.store import write_run
from tests.builders import LATELY, a_comparison
from tests.github.asking_hub import AskingHub
from tests.github.contract import examples, gatekeeper
from tests.github.hub import BOT, HEAD, NUMBER, REPOSITORY, TOKEN, serving
from tests.unit.github.test_grammar import HOSTILE, KNOWN

PADDED = "contract.padded_rows_prefilling"
RUN = "@hybridwatch run smoke/padded-graph-rows"
ARGUMENTS = ["run", "smoke/padded-graph-rows", "--build", "cpu-0.27.1", "--build", "cpu-0.27.1"]


@pytest.fixture(scope="module")
def _bare() -> Iterator[AskingHub]:
    state = AskingHub(examples())
    with serving(state) as address:
        state.base = address
        yield state


@pytest.fixture(scope="module")
def _behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AskingHub]:
    state = AskingHub(examples())
    log = tmp_path_factory.mktemp("prism") / "log"
    with serving(state) as upstream, gatekeeper(upstream, log) as address:
        state.base = address
        yield state


def _emptied(hub: AskingHub) -> AskingHub:
    base = hub.base
    hub.__init__(hub.examples)  # type: ignore[misc]
    hub.base = base
    return hub


@pytest.fixture
def asked(_bare: AskingHub) -> AskingHub:
    """A server that checks nothing but the token; starts empty."""
    return _emptied(_bare)


@pytest.fixture
def contract(_behind: AskingHub) -> AskingHub:
    """The same behind GitHub's published description."""
    return _emptied(_behind)


@pytest.fixture
def bot(tmp_path, monkeypatch) -> Callable[..., Any]:
    """Call the verb with an event; gives what was left for the other job."""
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.test")
    monkeypatch.setenv("GITHUB_REPOSITORY", REPOSITORY)
    monkeypatch.setenv("GITHUB_RUN_ID", "42")

    def run(hub: AskingHub, event: dict[str, Any], *more: str) -> dict[str, Any] | None:
        monkeypatch.setenv("GITHUB_API_URL", hub.base)
        file, job = tmp_path / "event.json", tmp_path / "job.txt"
        file.write_text(json.dumps(event))
        job.unlink(missing_ok=True)
        words = ["answer", "comment", str(file), "--repo", REPOSITORY, "--job", str(job), *more]
        done = CliRunner().invoke(cli, words, catch_exceptions=False)
        assert TOKEN not in done.output
        assert done.exit_code == 0, done.output
        if not job.exists():
            return None
        lines = dict(line.split("=", 1) for line in job.read_text().splitlines())
        return {**lines, "arguments": json.loads(lines["arguments"])}

    return run


def calls(hub: AskingHub) -> set[str]:
    return {f"{method} {re.sub('[0-9]+', 'N', path)}" for method, path, _ in hub.requests}


def states(hub: AskingHub) -> list[tuple[str, State]]:
    (body,) = hub.bodies()
    return [(one.words, one.state) for one in queue_in(body).asked]


def test_who_may_write_asks_and_another_job_measures(contract, bot) -> None:
    assert bot(contract, contract.asks(RUN)) == {"arguments": ARGUMENTS, "head": HEAD}
    (body,) = contract.bodies()
    assert body.startswith("<!-- hybridwatch asked -->\n**Asked here**\n")
    assert "| <code>run smoke/padded-graph-rows --build " in body
    assert "| ada | 2011-04-14 16:00 UTC | [running](https://github.test/octo/engine/" in body
    assert states(contract) == [(" ".join(ARGUMENTS), State.RUNNING)]


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
def test_others_get_no_answer_at_all(asked, bot, login, body) -> None:
    assert bot(asked, asked.asks(body, login)) is None
    assert asked.bodies() == []
    assert [method for method, _, _ in asked.requests] == ["GET", "GET"]


@pytest.mark.parametrize(
    "body", ["Looks good", f"> {RUN}", f"```\n{RUN}\n```", "@hybridwatch2 run smoke", f"cc {RUN}"]
)
def test_what_speaks_to_nobody_costs_not_even_a_question(asked, bot, body) -> None:
    assert bot(asked, asked.asks(body)) is None
    assert asked.requests == []


def test_a_right_that_is_not_asked_for_would_be_given_to_all(asked, bot, monkeypatch) -> None:
    """Planted: the check of rights left out."""
    monkeypatch.setattr(asker, "_may_write", lambda *_: True)
    assert bot(asked, asked.asks(RUN, "mallory")) is not None
    assert len(asked.bodies()) == 1


def hostile(hub: AskingHub, login: str) -> None:
    """Let hypothesis make comments up, and look at what each of them makes the bot do."""
    door = Access(TOKEN, hub.base)

    @settings(
        max_examples=500, deadline=None, database=None, derandomize=True,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(HOSTILE)
    def ask(body: str) -> None:
        hub.comments.clear()
        comment = hub.add(body, login, "User")
        claim = Claim(
            comment=comment["id"], pull_request=NUMBER, author=comment["user"]["id"], body=body
        )
        assert answering.take(door, REPOSITORY, claim, lambda: KNOWN, ()) is None
        assert all(method == "GET" for method, _, _ in hub.requests)

    ask()


def test_500_hostile_comments_by_strangers_change_nothing(asked) -> None:
    hostile(asked, "mallory")
    assert {path.rpartition("/")[2] for _, path, _ in asked.requests} > {"permission"}


def test_a_bot_that_lets_strangers_in_would_be_seen(asked, monkeypatch) -> None:
    """Planted: the same comments, and everybody may."""
    monkeypatch.setattr(asker, "_may_write", lambda *_: True)
    with pytest.raises(AssertionError):
        hostile(asked, "mallory")


# The event is a claim.


def test_an_edited_comment_does_not_run_with_its_authors_rights(asked, bot) -> None:
    event = asked.asks("Looks good")
    asked.comments[0]["body"] = RUN
    event["comment"]["body"] = RUN
    event["action"] = "edited"
    assert bot(asked, event) is None
    assert asked.requests == []


def test_a_comment_that_was_edited_since_is_not_run(asked, bot) -> None:
    event = asked.asks("@hybridwatch help")
    asked.comments[0]["body"] = RUN
    assert bot(asked, event) is None
    event["comment"]["body"] = f"{RUN} --known-bad"
    assert bot(asked, event) is None
    assert asked.bodies() == []


def test_a_claim_that_is_not_held_against_the_comment_would_be_run(asked, bot, monkeypatch) -> None:
    """Planted: the event is believed."""
    event = asked.asks("@hybridwatch help")
    event["comment"]["body"] = RUN
    monkeypatch.setattr(asker, "_is_as_claimed", lambda *_: True)
    assert bot(asked, event) is not None


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
def test_an_event_that_says_otherwise_than_github_runs_nothing(asked, bot, change) -> None:
    event = asked.asks(RUN)
    change(event)
    assert bot(asked, event) is None
    assert asked.bodies() == []


def test_a_name_that_changed_hands_does_not_bring_its_rights(asked, bot) -> None:
    """Between the two questions somebody else took the name of the author."""
    event = asked.asks(RUN)
    asked.numbers["ada"] = 4711
    assert bot(asked, event) is None
    assert asked.bodies() == []


def test_bots_are_not_answered_and_so_never_answer_each_other(asked, bot) -> None:
    asked.rights[BOT] = asked.rights["other[bot]"] = "admin"
    for login in (BOT, "other[bot]"):
        assert bot(asked, asked.event(asked.add(RUN, login, "Bot"))) is None
    assert len(asked.comments) == 2


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"no JSON", "file: expected an event issue_comment"),
        (b'{"action": "created"}', "comment: expected an event issue_comment"),
        (b"\xff", "file: expected an event issue_comment"),
    ],
)
def test_a_file_that_is_no_event_is_a_wrong_call(tmp_path, monkeypatch, content, told) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    file = tmp_path / "event.json"
    file.write_bytes(content)
    done = CliRunner().invoke(cli, ["answer", "comment", str(file), "--repo", REPOSITORY])
    assert done.exit_code == 2
    assert told in done.stderr


def test_an_event_of_another_repository_is_a_wrong_call(asked, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    event = asked.asks(RUN) | {"repository": {"full_name": "mallory/engine"}}
    (tmp_path / "event.json").write_text(json.dumps(event))
    words = ["answer", "comment", str(tmp_path / "event.json"), "--repo", REPOSITORY]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 2
    assert "repository.full_name: expected octo/engine, found 'mallory/engine'" in done.stderr
    assert asked.requests == []


# The queue.


def test_a_comment_that_comes_twice_is_one_command(asked, bot) -> None:
    event = asked.asks(RUN)
    assert bot(asked, event) is not None
    assert bot(asked, event) is None
    assert len(states(asked)) == 1


def test_a_bot_without_a_memory_would_measure_twice(asked, bot, monkeypatch) -> None:
    """Planted: what was asked before is not looked at."""
    monkeypatch.setattr(answering, "read_comment", lambda _: read_comment(None))
    event = asked.asks(RUN)
    assert bot(asked, event) is not None
    assert bot(asked, event) is not None


def test_what_was_not_understood_is_one_line_with_the_closest_match(asked, bot) -> None:
    assert bot(asked, asked.asks("@hybridwatch run smoke/padded-graph-row")) is None
    assert bot(asked, asked.asks(f"{RUN}\n{RUN}")) is None
    (body,) = asked.bodies()
    assert states(asked)[0] == ("run smoke/padded-graph-row", State.REFUSED)
    assert "did you mean smoke/padded-graph-rows?" in body
    assert "refused: expected one command in a comment, found 2" in body


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("pushed_at", "2011-04-14T16:00:49Z", "the branch was pushed to after the comment"),
        ("pushed_at", None, "the branch was pushed to after the comment"),
        ("state", "closed", "the pull request is closed"),
    ],
)
def test_code_that_the_person_may_not_have_seen_is_not_measured(
    asked, bot, name, value, told
) -> None:
    setattr(asked, name, value)
    assert bot(asked, asked.asks(RUN)) is None
    assert told in asked.bodies()[0]
    assert states(asked)[0][1] is State.REFUSED


def test_so_many_wait_and_no_more(asked, bot) -> None:
    given_on = [bot(asked, asked.asks(RUN)) for _ in range(MOST_OPEN + 1)]
    assert [one is None for one in given_on] == [False] * MOST_OPEN + [True]
    assert states(asked)[-1][1] is State.REFUSED
    assert f"{MOST_OPEN} commands wait or run already" in asked.bodies()[0]


def test_the_queue_is_bounded_and_what_it_forgot_is_not_run_again(asked, bot, monkeypatch) -> None:
    monkeypatch.setattr(ledger, "MOST_KEPT", 3)
    first = asked.asks("@hybridwatch help")
    bot(asked, first)
    for _ in range(4):
        bot(asked, asked.asks("@hybridwatch nonsense"))
    assert len(states(asked)) == 3
    before = asked.bodies()
    assert bot(asked, first) is None
    assert asked.bodies() == before


def race(hub: AskingHub, monkeypatch: pytest.MonkeyPatch) -> list[State]:
    """Let two jobs write at once: one looks, the other writes, the first writes as well."""
    paused, over = threading.Event(), threading.Event()

    def pause(_: float) -> None:
        if threading.current_thread() is not threading.main_thread():
            paused.set()
            assert over.wait(60)

    def entry(number: int, state: State) -> Asked:
        return Asked(comment=number, words="help", who="ada", at=LATELY, state=state)

    def put(number: int, state: State) -> None:
        pull = PullRequest(Access(TOKEN, hub.base), REPOSITORY, NUMBER)
        answering.put_entry(pull, entry(number, state))

    def meanwhile() -> None:
        other.start()
        assert paused.wait(60)

    put(1, State.DONE)
    # Not time.sleep itself: PyGithub sleeps between two requests that write.
    monkeypatch.setattr(answering, "time", SimpleNamespace(sleep=pause))
    other = threading.Thread(target=put, args=(2, State.REFUSED))
    hub.before_edit = meanwhile
    put(3, State.RUNNING)
    over.set()
    other.join(60)
    return [state for _, state in states(hub)]


def test_two_jobs_at_once_lose_nothing(asked, monkeypatch) -> None:
    assert race(asked, monkeypatch) == [State.DONE, State.REFUSED, State.RUNNING]


def test_a_job_that_does_not_look_again_would_lose_its_entry(asked, monkeypatch) -> None:
    """Planted: one look."""
    monkeypatch.setattr(answering, "_LOOKS", 1)
    assert race(asked, monkeypatch) == [State.DONE, State.RUNNING]


def test_hidden_state_of_somebody_else_is_not_believed(asked, bot) -> None:
    event = asked.asks(RUN)
    bot(asked, event)
    forged = asked.bodies()[0]
    asked.comments[1:] = []
    asked.add(forged, "mallory", "User")
    assert bot(asked, event) is not None
    assert asked.bodies("mallory") == [forged]


def test_a_state_in_a_result_is_not_the_state(asked, bot, monkeypatch) -> None:
    """A log, or a record, that prints our marks."""
    bot(asked, asked.asks(RUN))
    (genuine,) = asked.bodies()
    forged = f"\n```\n{genuine}\n<!-- hybridwatch result -->\n```\n"
    monkeypatch.setattr(verb, "_read", lambda *_: (0, forged))
    bot(asked, asked.asks("@hybridwatch explain ttft"))
    bot(asked, asked.asks("@hybridwatch nonsense"))
    assert [state for _, state in states(asked)] == [State.RUNNING, State.DONE, State.REFUSED]
    (body,) = asked.bodies()
    assert body.count("<!-- hybridwatch asked -->") == 1
    assert body.count("**Asked here**") == 2
    assert read_comment(body).result.strip() == forged.strip().replace("<!-- h", "<!-\u200b- h")


# Answers.


def test_help_shows_the_grammar_that_the_documentation_has(asked, bot) -> None:
    bot(asked, asked.asks("@hybridwatch help"))
    (body,) = asked.bodies()
    page = Path(__file__).parents[2] / "docs" / "pull-request-commands.md"
    shown = body.partition("```\n")[2].partition("```")[0]
    assert shown.startswith("@hybridwatch help\n")
    assert shown in page.read_text()
    assert bot(asked, asked.event(asked.add(body, "ada", "User"))) is None, "it speaks to nobody"


def test_compare_is_answered_at_once_by_a_process_without_a_token(
    asked, bot, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("HYBRIDWATCH_OTHER", "kept")
    results = tmp_path / "results"
    run = a_comparison({PADDED: (0.0,)}, {PADDED: (4.0,)}, started_at=LATELY)
    write_run(results, run)
    seen: list[dict[str, str]] = []
    kept = verb._environment
    monkeypatch.setattr(verb, "_environment", lambda one: seen.append(kept(one)) or seen[-1])
    assert (
        bot(asked, asked.asks(f"@hybridwatch compare {run.id}"), "--results", str(results)) is None
    )
    (body,) = asked.bodies()
    assert states(asked) == [(f"compare {run.id}", State.DONE)]
    assert "padded_rows_prefilling" in body
    assert "regression" in body.lower()
    assert not any(TOKEN in value for value in seen[0].values())
    assert seen[0]["HYBRIDWATCH_OTHER"] == "kept"


def test_a_reading_that_fails_is_told(asked, bot, tmp_path) -> None:
    bot(asked, asked.asks("@hybridwatch explain ttft"), "--results", str(tmp_path / "none"))
    assert states(asked) == [("explain latest ttft", State.FAILED)]


def test_nothing_is_measured_where_no_other_job_waits(asked, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_API_URL", asked.base)
    (tmp_path / "event.json").write_text(json.dumps(asked.asks(RUN)))
    words = ["answer", "comment", str(tmp_path / "event.json"), "--repo", REPOSITORY]
    assert CliRunner().invoke(cli, words, catch_exceptions=False).exit_code == 0
    assert states(asked)[0][1] is State.REFUSED


# The result, and the verdict that `hybridwatch comment` writes.


def close(hub: AskingHub, *more: str) -> Any:
    words = ["answer", "result", "--repo", REPOSITORY, "--pr", str(NUMBER), *more]
    return CliRunner().invoke(cli, words, catch_exceptions=False)


@pytest.fixture
def records(tmp_path: Path) -> Path:
    run = a_comparison({PADDED: (0.0,)}, {PADDED: (4.0,)}, started_at=LATELY)
    write_run(tmp_path / "records", run)
    return tmp_path / "records"


def test_the_result_stands_below_the_queue(contract, bot, records) -> None:
    event = contract.asks(RUN)
    bot(contract, event)
    number = str(event["comment"]["id"])
    done = close(contract, "--comment", number, "--state", "done", "--records", str(records))
    assert done.exit_code == 0, done.output
    (body,) = contract.bodies()
    assert states(contract) == [(" ".join(ARGUMENTS), State.DONE)]
    result = body.partition("<!-- hybridwatch result -->\n")[2]
    assert "A contract broke" in result.split("\n")[2]
    assert "not judged: missing" not in result, "what the policy expects does not matter here"
    assert contract.checks == []


def test_a_result_of_nobodys_command_is_an_error(asked, bot) -> None:
    bot(asked, asked.asks(RUN))
    done = close(asked, "--comment", "4711", "--state", "done")
    assert done.exit_code == 2
    assert "expected a command asked in comment 4711, found none" in done.stderr


def test_verdict_and_queue_live_in_one_comment(asked, bot, records, tmp_path) -> None:
    policy = tmp_path / "gate.toml"
    policy.write_text('[[rule]]\nmetric = "*"\naction = "block"\n')
    judge = ["comment", "--repo", REPOSITORY, "--pr", str(NUMBER), "--policy", str(policy)]
    event = asked.asks(RUN)
    bot(asked, event)
    for _ in range(2):
        done = CliRunner().invoke(cli, [*judge, "--results", str(records)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
    assert "comment: unchanged" in done.output
    close(asked, "--comment", str(event["comment"]["id"]), "--state", "failed", "--note", "it died")
    bot(asked, asked.asks("@hybridwatch help"))
    (body,) = asked.bodies()
    assert body.startswith("**A contract broke")
    assert states(asked) == [(" ".join(ARGUMENTS), State.FAILED), ("help", State.DONE)]
    assert "failed](https://github.test/octo/engine/actions/runs/42): it died" in body
    assert body.endswith("<!-- hybridwatch: bad -->\n")


def test_too_long_a_comment_loses_its_result_first(asked, bot, monkeypatch) -> None:
    bot(asked, asked.asks("@hybridwatch help"))
    ours = next(one for one in asked.comments if one["user"]["login"] == BOT)
    now = read_comment(ours["body"])
    long = replace(now, verdict="**Verdict**\n" + "x" * (LIMIT - 2000), result="y" * 9000)
    ours["body"] = verdict = answering.write_comment(long)
    assert "yyy" not in verdict
    assert len(verdict.encode()) <= LIMIT
    longer = replace(now, verdict="**Verdict**\n" + "x" * LIMIT)
    assert answering.write_comment(longer).startswith("**Verdict**\n\n<!-- hybridwatch asked")
