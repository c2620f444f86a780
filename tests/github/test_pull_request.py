"""The bot against a real server: the contract, and what only state can show."""

import logging
import re
import traceback
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest
import requests
from github import GithubRetry

from hybridwatch.errors import GithubError
from hybridwatch.integrations.github import client as ours
from hybridwatch.integrations.github.client import PullRequest, RepositoryAccess
from hybridwatch.integrations.notify.channels import Github
from hybridwatch.integrations.notify.issues import WantedIssue, open_tracker
from tests.github.hub import BOT, EARLIER, HEAD, NUMBER, PERSONAL, REPOSITORY, TOKEN, Fault
from tests.waiting import LIMIT_S

MARK = "<!-- ours -->"
CHECK = ("failure", "Bad news", "**Bad news**", "https://github.com/octo/engine/actions/runs/1")


def say(pull, text):
    return pull.comment(lambda body: MARK in body, lambda _: text)


def text(number: int = 1) -> str:
    return f"verdict {number}\n\n{MARK}\n"


# Every call once, behind the published description.


def test_all_that_the_bot_does_fits_the_published_description(contract, enter) -> None:
    pull = enter(contract)
    assert pull.head == HEAD
    assert pull.has_commit(EARLIER)
    assert not pull.has_commit("c" * 40)
    assert [say(pull, text()), say(pull, text()), say(pull, text(2))] == [
        "posted",
        "unchanged",
        "edited",
    ]
    contract.add(text(3))
    assert say(pull, text(2)) == "unchanged"
    assert contract.bodies() == [text(2)]
    assert [pull.check(HEAD, *CHECK), pull.check(HEAD, *CHECK)] == ["posted", "unchanged"]
    (check,) = contract.checks
    assert (check["name"], check["head_sha"]) == ("hybridwatch", HEAD)
    asked = {(method, re.sub(r"\d+|[ab]{40}", "N", path)) for method, path, _ in contract.requests}
    assert len(asked) == 9, "every call but those of issues and /user, a person's; and /graphql"


def test_a_person_finds_the_own_comment_behind_the_description(contract, enter) -> None:
    contract.login = "ada"
    contract.add(text(9))
    pull = enter(contract, token=PERSONAL)
    assert [say(pull, text()), say(pull, text(2))] == ["posted", "edited"]
    assert contract.bodies("ada") == [text(2)]
    assert contract.bodies(BOT) == [text(9)]


@pytest.mark.parametrize(("token", "login"), [(TOKEN, None), (PERSONAL, "ada")])
def test_all_that_is_done_with_issues_fits_the_published_description(
    contract, monkeypatch, token, login
) -> None:
    contract.login = login
    monkeypatch.setenv("T_GITHUB", token)
    channel = Github(name="x", repository=REPOSITORY, token_from="T_GITHUB", api=contract.base)  # noqa: S106
    ours = open_tracker(channel)._tracker
    before = len(ours.find(lambda _: True))
    made = ours.create(WantedIssue("Slower", "it is <!-- mark -->", is_open=True, is_done=False))
    assert made.complaint == ""
    ours.comment(made.number, "worse")
    assert list(ours.comments(made.number)) == ["worse"]
    for is_open, is_done in ((False, True), (True, False), (False, False)):
        ours.change(made.number, WantedIssue("Over", "over <!-- mark -->", is_open, is_done))
    found = ours.get(made.number)
    assert found is not None
    assert found.body == "over <!-- mark -->"
    assert len(ours.find(lambda body: "mark" in body)) == before + 1
    assert ours.get("999") is None


@pytest.mark.parametrize(
    ("method", "path", "sent"),
    [
        ("POST", f"issues/{NUMBER}/comments", {"text": "no body"}),
        ("POST", "check-runs", {"name": "hybridwatch"}),
        ("POST", "check-runs", {"name": "x", "head_sha": HEAD, "output": {"title": "no summary"}}),
        ("POST", "issues", {"body": "no title"}),
        ("POST", "issues", {"title": "x", "labels": "no list"}),
        ("PATCH", "issues/1", {"state": "over"}),
        ("PATCH", "issues/1", {"state_reason": "bored"}),
    ],
)
def test_the_description_refuses_what_github_would(contract, method, path, sent) -> None:
    """Planted: a bot that forgets a field; without the gatekeeper nobody would notice."""
    refused = requests.request(
        method,
        f"{contract.base}/repos/{REPOSITORY}/{path}",
        json=sent,
        headers={"Authorization": f"token {TOKEN}"},
        timeout=LIMIT_S,
    )
    assert refused.status_code == 422
    assert "stoplight" in refused.json()["type"]
    assert contract.requests == []


def test_the_description_refuses_an_answer_that_github_would_not_give(contract) -> None:
    contract.faults.append(Fault("GET", "/pulls/", 200, {"number": "seven"}))
    wrong = requests.get(f"{contract.base}/repos/{REPOSITORY}/pulls/{NUMBER}", timeout=LIMIT_S)
    assert wrong.status_code == 500


# What a description cannot hold.


def test_a_comment_beyond_the_first_page_is_found(hub, enter) -> None:
    """A bot that reads one page posts twice."""
    hub.page = 3
    for number in range(7):
        hub.add(f"a word {number}", f"person{number}", "User")
    hub.add(text())
    hub.add("thanks", "ada", "User")
    assert say(enter(hub), text()) == "unchanged"
    assert say(enter(hub), text(2)) == "edited"
    assert hub.bodies() == [text(2)]
    hub.commits = [f"{number:040x}" for number in range(7)] + [HEAD]
    assert enter(hub).has_commit(f"{6:040x}")


def test_nothing_is_posted_when_there_is_nothing_to_say(hub, enter) -> None:
    assert say(enter(hub), None) == "silent"
    assert hub.comments == []


def test_an_existing_comment_is_what_the_next_one_is_made_from(hub, enter) -> None:
    hub.add(text(4))
    seen = []
    enter(hub).comment(lambda body: MARK in body, lambda body: seen.append(body))
    assert seen == [text(4)]


def test_line_ends_are_no_news(hub, enter) -> None:
    hub.add(text().replace("\n", "\r\n").rstrip())
    assert say(enter(hub), text()) == "unchanged"
    assert {path for method, path, _ in hub.requests if method != "GET"} == {"/graphql"}


STRANGERS = [("mallory", "User"), ("ada", "User"), ("renovate[bot]", "Bot"), ("x[bot]", "Bot")]


@pytest.mark.parametrize(("login", "kind"), STRANGERS)
def test_a_stranger_with_our_mark_is_left_alone(hub, enter, login, kind) -> None:
    """A job's token may edit anybody's comment, and anybody can copy a hidden mark, bots too."""
    hub.add(text(), login, kind)
    assert say(enter(hub), text(2)) == "posted"
    hub.add(text(), login, kind)
    assert say(enter(hub), text(3)) == "edited"
    assert hub.bodies(login) == [text(), text()]
    assert hub.bodies() == [text(3)]


def test_who_takes_our_name_later_does_not_get_our_comments(hub, enter) -> None:
    theirs = hub.add(text())
    theirs["user"]["id"] += 1
    assert say(enter(hub), text(2)) == "posted"
    assert hub.bodies() == [text(), text(2)]


def test_a_comment_of_an_account_that_is_gone_is_nobodys(hub, enter) -> None:
    hub.add(text())["user"] = None
    assert say(enter(hub), text(2)) == "posted"
    assert [comment["body"] for comment in hub.comments] == [text(), text(2)]


def test_any_bot_with_our_mark_would_be_edited_if_only_its_kind_counted(
    hub, enter, monkeypatch
) -> None:
    """Planted: ours by mark and kind, as it was."""
    monkeypatch.setattr(ours, "_is_by", lambda comment, _: comment.user.type == "Bot")
    hub.add(text(), "renovate[bot]", "Bot")
    hub.add(text())
    assert say(enter(hub), text(2)) == "edited"
    assert hub.bodies("renovate[bot]") == [text(2)]
    assert hub.bodies() == []


@pytest.mark.parametrize("answer", [{"data": {"viewer": None}}, {"data": None}, {}])
def test_nothing_is_posted_when_nobody_says_as_whom(hub, enter, answer) -> None:
    hub.faults.append(Fault("POST", "/graphql", 200, answer))
    with pytest.raises(GithubError, match="does not say as whom the token writes"):
        say(enter(hub), text())
    assert hub.comments == []


def test_a_comment_that_was_written_as_someone_else_is_an_error(hub, enter) -> None:
    """It would not be found again, and each run would post one more."""
    hub.faults.append(Fault("POST", "/graphql", 200, {"data": {"viewer": {"databaseId": 7}}}))
    with pytest.raises(GithubError, match=r"was written by 41898282, the token is of 7"):
        say(enter(hub), text())


def test_a_token_of_another_make_that_is_nobodys_writes_as_a_bot(hub, enter) -> None:
    hub.add(text())
    assert say(enter(hub, token=PERSONAL), text(2)) == "edited"


def test_two_bots_that_race_leave_one_comment(hub, enter) -> None:
    """The other posts between our look and our post."""
    hub.before_post = lambda: hub.add(text(1))
    assert say(enter(hub), text(2)) == "posted"
    assert hub.bodies() == [text(2)]


def test_many_bots_at_once_leave_one_comment(hub, enter) -> None:
    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(lambda: say(enter(hub), text())) for _ in range(4)]
        said = [one.result() for one in done]
    assert set(said) <= {"posted", "unchanged", "edited"}
    assert hub.bodies() == [text()]


def test_a_bot_that_does_not_look_again_leaves_two(hub, enter, monkeypatch) -> None:
    """Planted: without the second look the race is lost."""
    looked = PullRequest._ours

    def once(self, *found):
        if getattr(self, "_looked", False):
            return []
        self._looked = True
        return looked(self, *found)

    monkeypatch.setattr(PullRequest, "_ours", once)
    hub.before_post = lambda: hub.add(text(1))
    say(enter(hub), text(2))
    assert len(hub.bodies()) == 2


def test_a_post_that_was_served_and_not_acknowledged_is_not_there_twice(hub, enter) -> None:
    bad_gateway = Fault("POST", "/comments", 502, {"message": "Bad gateway"}, served=True)
    hub.faults.append(bad_gateway)
    assert say(enter(hub), text()) == "posted"
    posts = [path for method, path, _ in hub.requests if method == "POST"]
    assert len([path for path in posts if path != "/graphql"]) == 2
    assert hub.bodies() == [text()]


@pytest.mark.parametrize(
    ("status", "message", "told"),
    [
        (401, "Bad credentials", "GITHUB_TOKEN is not valid"),
        (403, "Resource not accessible by integration", "pull-requests: write"),
        (404, "Not Found", "no such repository or pull request"),
        (422, "Validation Failed", "does not take this content"),
    ],
)
def test_a_refusal_is_one_line_that_says_what_to_do(hub, enter, status, message, told) -> None:
    hub.faults.append(Fault("POST", "/comments", status, {"message": message}))
    with pytest.raises(GithubError, match=rf"{status}: {message}.*{told}") as caught:
        say(enter(hub), text())
    assert "\n" not in str(caught.value)
    assert f"{REPOSITORY}#{NUMBER}" in str(caught.value)
    assert hub.comments == []


def test_a_wrong_token_is_refused_by_the_server_itself(hub, enter) -> None:
    with pytest.raises(GithubError, match="401: Bad credentials"):
        enter(hub, token="ghs_other")  # noqa: S106 (opens nothing)


def test_no_such_pull_request(hub, enter) -> None:
    with pytest.raises(GithubError, match="404: Not Found"):
        enter(hub, number=8)


def test_nobody_there(enter, hub) -> None:
    hub.base = "http://127.0.0.1:9"
    with pytest.raises(GithubError, match="cannot be reached"):
        enter(hub)


SECONDARY = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes."}
PRIMARY = {"message": "API rate limit exceeded for installation ID 1."}


@pytest.mark.parametrize(
    ("status", "body", "headers", "waited"),
    [
        (403, SECONDARY, {"Retry-After": "7"}, 7),
        (429, SECONDARY, {"Retry-After": "7"}, 7),
        (403, SECONDARY, {}, 60),
        (403, PRIMARY, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "{soon}"}, 30),
    ],
    ids=["retry-after", "429", "secondary", "primary"],
)
def test_a_rate_limit_that_ends_soon_is_waited_for(
    hub, enter, naps, status, body, headers, waited, monkeypatch
) -> None:
    now = 1_800_000_000

    class Still(datetime):
        """What PyGithub takes for the time."""

        @classmethod
        def now(cls, tz=None):
            return datetime.fromtimestamp(now, tz)

    monkeypatch.setattr(GithubRetry, "_GithubRetry__datetime", Still)
    soon = {name: value.format(soon=now + 30) for name, value in headers.items()}
    hub.faults.append(Fault("POST", "/comments", status, body, soon))
    assert say(enter(hub), text()) == "posted"
    assert any(abs(nap - waited) <= 2 for nap in naps)
    assert hub.bodies() == [text()]


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (PRIMARY, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "4102444800"}),
        (SECONDARY, {"Retry-After": "86400"}),
    ],
    ids=["primary", "retry-after"],
)
def test_a_rate_limit_that_does_not_end_is_reported_in_time(
    hub, enter, naps, body, headers
) -> None:
    hub.faults.append(Fault("POST", "/comments", 403, body, headers, times=99))
    with pytest.raises(GithubError, match=r"rate limit|too many 403"):
        say(enter(hub), text())
    assert max(naps, default=0.0) <= 120
    assert hub.comments == []


def test_a_check_changes_with_its_content_only(hub, enter) -> None:
    pull = enter(hub)
    assert pull.check(HEAD, *CHECK) == "posted"
    better = ("success", "Equivalent", "all well")
    assert [pull.check(HEAD, *better), pull.check(HEAD, *better)] == ["posted", "unchanged"]
    assert [check["conclusion"] for check in hub.checks] == ["failure", "success"]


# The token.


@pytest.mark.parametrize("status", [401, 403, 404, 422, 500])
def test_the_token_is_never_said_even_if_the_server_says_it(
    hub, enter, overheard, capfd, status
) -> None:
    echo = {"message": f"who is token {TOKEN}?"}
    hub.faults.append(Fault("POST", "/comments", status, echo, times=99))
    with pytest.raises(GithubError) as caught:
        say(enter(hub), text())
    assert any(TOKEN in token for _, _, token in hub.requests), "it was sent"
    shown = "".join(traceback.format_exception(caught.value))
    heard = overheard.getvalue()
    logged = status in {401, 404, 422}  # a 403 and a 500 are tried again first
    assert ("who is token ***?" in heard) is logged
    said = shown + str(caught.value) + repr(RepositoryAccess(TOKEN))
    assert TOKEN not in "".join(capfd.readouterr()) + heard + said


def test_the_token_is_not_logged(hub, enter, overheard, capfd) -> None:
    say(enter(hub), text())
    heard = overheard.getvalue()
    assert "Authorization" in heard, "requests are logged with their headers"
    assert TOKEN not in heard + "".join(capfd.readouterr())


def test_a_leak_would_be_heard(hub, overheard) -> None:
    """Planted: a bot that logs what it sends, where PyGithub would."""
    logging.getLogger("github.Requester").debug("headers: %s", {"Authorization": TOKEN})
    assert TOKEN in overheard.getvalue()
