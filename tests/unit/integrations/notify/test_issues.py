"""One issue for each topic, on stand-ins of GitHub and GitLab: found again, never two."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from hybridwatch.integrations.notify.channels import Github, Gitlab
from hybridwatch.integrations.notify.clients import UndeliveredError
from hybridwatch.integrations.notify.issues import (
    IssueClient,
    build_wanted_issue,
    open_tracker,
    render_comment,
)
from hybridwatch.integrations.notify.news import Content, News
from tests.github.contract import examples
from tests.github.hub import REPOSITORY, TOKEN, Hub, serving
from tests.unit.integrations.notify.pretended import HOSTILE, a_message
from tests.unit.integrations.notify.services import ME, PROJECT


class OnGithub:
    """What the tests ask of GitHub."""

    def __init__(self, hub: Hub, channel: Github) -> None:
        self.hub, self.channel = hub, channel
        self.weather = hub.weather

    def client(self) -> IssueClient:
        return open_tracker(self.channel)

    @property
    def issues(self) -> list[tuple[str, bool]]:
        return [(one["title"], one["state"] == "open") for one in self.hub.issues]

    def body(self, number: int = 1) -> str:
        return str(self.hub.issues[number - 1]["body"])

    def said(self, number: int = 1) -> list[str]:
        return self.hub.said_on(number)

    def open(self, body: str, *, ours: bool = True) -> None:
        login = "github-actions[bot]" if ours else "mallory"
        self.hub.open_issue("x", body, ["hybridwatch"], login)

    def forget(self) -> None:
        self.hub.issues.clear()

    def write(self, number: int, body: str) -> None:
        self.hub.issues[number - 1]["body"] = body

    def leave_labels_out(self) -> None:
        self.hub.keeps_labels = False


class OnGitlab:
    """What the tests ask of GitLab."""

    def __init__(self, services: Any, channel: Gitlab) -> None:
        self.services, self.channel = services, channel
        self.weather = services.weather

    def client(self) -> IssueClient:
        return open_tracker(self.channel)

    @property
    def issues(self) -> list[tuple[str, bool]]:
        return [(one["title"], one["state"] == "opened") for one in self.services.issues]

    def body(self, number: int = 1) -> str:
        return str(self.services.issues[number - 1]["description"])

    def said(self, number: int = 1) -> list[str]:
        return list(self.services.said_on(number))

    def open(self, body: str, *, ours: bool = True) -> None:
        self.services.open_issue("x", body, "hybridwatch", ME if ours else 5)

    def forget(self) -> None:
        self.services.issues.clear()

    def write(self, number: int, body: str) -> None:
        self.services.issues[number - 1]["description"] = body

    def leave_labels_out(self) -> None:
        plain = self.services.open_issue
        self.services.open_issue = lambda **sent: plain(**{**sent, "labels": ""})


@pytest.fixture(params=["github", "gitlab"])
def hub(request, monkeypatch) -> Iterator[OnGithub | OnGitlab]:
    """A repository without issues."""
    if request.param == "gitlab":
        services = request.getfixturevalue("services")
        channel = Gitlab(name="team", project=PROJECT, token_from="T_GITLAB", url=services.url)  # noqa: S106
        yield OnGitlab(services, channel)
        return
    monkeypatch.setenv("T_GITHUB", TOKEN)
    state = Hub(examples())
    with serving(state) as address:
        state.base = address
        yield OnGithub(
            state,
            Github(name="team", repository=REPOSITORY, token_from="T_GITHUB", api=address),  # noqa: S106
        )


STORY = (News.OPENED, News.WORSE, News.RECOVERED, News.BACK, News.CLOSED)


def test_an_issue_opens_is_reported_closes_and_opens_again(hub) -> None:
    client = hub.client()
    states = []
    for number, news in enumerate(STORY, 1):
        receipt = client.deliver(a_message(news, number), "")
        assert (receipt.place, receipt.complaint) == ("1", "")
        ((title, is_open),) = hub.issues
        assert title == a_message(news).headline
        states.append(is_open)
    assert states == [True, True, False, True, False]
    assert len(hub.said()) == len(STORY) - 1, "the first news is the issue itself"


def test_what_is_delivered_twice_is_reported_once(hub) -> None:
    client = hub.client()
    for number, news in enumerate(STORY, 1):
        for place in ("", "1", ""):
            client.deliver(a_message(news, number), place)
    assert len(hub.issues) == 1
    assert len(hub.said()) == len(STORY) - 1


def test_a_number_that_is_gone_is_not_trusted(hub) -> None:
    hub.client().deliver(a_message(), "9")
    assert len(hub.issues) == 1


def test_a_number_of_another_repository_leads_to_nobody_elses_issue(hub) -> None:
    """The file names another repository by now."""
    hub.open("a stranger's", ours=False)
    hub.open(build_wanted_issue(a_message(topic="cd" * 16)).body)
    for place in ("1", "2"):
        assert hub.client().deliver(a_message(), place).place == "3"
    assert hub.issues[:2] == [("x", True), ("x", True)]
    assert len(hub.issues) == 3


def test_an_issue_of_which_somebody_changed_the_text_is_still_it(hub) -> None:
    hub.client().deliver(a_message(), "")
    hub.open("padding")
    hub.write(1, "I know more about it")
    assert hub.client().deliver(a_message(News.WORSE, 2), "1").place == "1"
    assert len(hub.issues) == 2
    assert "Worse now" in hub.body()


def test_a_mark_that_a_stranger_copied_is_not_ours(hub) -> None:
    hub.open(build_wanted_issue(a_message()).body, ours=False)
    hub.client().deliver(a_message(), "")
    assert len(hub.issues) == 2
    assert hub.issues[0] == ("x", True), "a stranger's issue is left alone"


def test_two_that_came_into_being_are_one_again(hub) -> None:
    """A request that seemed lost, and was served after we looked."""
    tracker = hub.client()._tracker
    plain, looks = tracker.find, []

    def find(is_marked):
        looks.append(is_marked)
        return plain(is_marked) if len(looks) > 1 else []

    tracker.find = find
    hub.open(build_wanted_issue(a_message()).body)
    receipt = IssueClient(tracker).deliver(a_message(number=2), "")
    assert receipt.place == "1"
    assert [is_open for _, is_open in hub.issues] == [True, False]
    assert hub.issues[1][0] == "Duplicate of #1"
    assert "hybridwatch-topic" not in hub.body(2), "it is not found as ours any more"


def test_the_end_of_what_somebody_removed_makes_no_issue(hub) -> None:
    hub.client().deliver(a_message(News.OPENED), "")
    hub.forget()
    receipt = hub.client().deliver(a_message(News.RECOVERED, 2), "1")
    assert (receipt.place, hub.issues) == ("", [])


def test_a_label_that_was_left_out_is_reported(hub) -> None:
    hub.leave_labels_out()
    receipt = hub.client().deliver(a_message(), "")
    assert "left the label hybridwatch out" in receipt.complaint
    assert receipt.place == "1"


def test_issues_on_many_pages_are_found(hub) -> None:
    for _ in range(105):
        hub.open("another one of ours")
    hub.open(build_wanted_issue(a_message()).body)
    assert hub.client().deliver(a_message(News.WORSE, 2), "").place == "106"
    assert len(hub.issues) == 106


def test_hostile_texts_stay_texts(hub) -> None:
    content = Content(HOSTILE, HOSTILE, HOSTILE, HOSTILE, "warn", "speed", missing=(HOSTILE,))
    message = a_message(content=content)
    hub.client().deliver(message, "")
    for text in (hub.body(), render_comment(message)):
        assert "<script" not in text
        assert "@all" not in text
        assert not any(line.lstrip("- ").startswith("/") for line in text.splitlines())
        assert text.count("<!-- hybridwatch-news") == 1


def test_a_title_mentions_nobody_and_refers_to_nothing(hub) -> None:
    """GitLab looks for people, issues and links in a title, too."""
    what = "@all fixes #1, !2, &3 and GH-4 of octo/engine#5, see https://gitlab.test/a/b/-/issues/6"
    content = Content(what, "", "smoke/\u202e@team", "", "warn", "speed")
    hub.client().deliver(a_message(content=content), "")
    ((title, _),) = hub.issues
    assert not re.search(r"[@#!&][\w/]|GH-\d|://", title)
    assert "\u202e" not in title
    assert title.replace("\u200b", "").startswith(what)


def test_a_title_is_no_longer_than_both_take(hub) -> None:
    content = Content("@" * 400, "", "", "", "warn", "speed")
    hub.client().deliver(a_message(content=content), "")
    assert len(hub.issues[0][0]) <= 255


def test_a_wrong_token_is_said_and_not_shown(hub, monkeypatch) -> None:
    monkeypatch.setenv(hub.channel.token_from, "planted-secret")
    with pytest.raises(UndeliveredError) as failure:
        hub.client().deliver(a_message(), "")
    assert "401" in str(failure.value)
    assert "planted-secret" not in str(failure.value)
    assert (failure.value.alone, failure.value.again) == (False, False)


def test_a_service_that_fails_is_worth_another_try(hub) -> None:
    hub.weather.share = 1.0
    with pytest.raises(UndeliveredError) as failure:
        hub.client().deliver(a_message(), "")
    assert failure.value.again


def test_without_a_token_nothing_is_sent(hub, monkeypatch) -> None:
    monkeypatch.delenv(hub.channel.token_from)
    with pytest.raises(UndeliveredError, match="expected a token in the environment, found none"):
        hub.client()


def test_a_stand_in_that_takes_anything_would_hide_a_wrong_call(services) -> None:
    """Planted: a parameter that GitLab does not know."""
    sent = {"title": "x", "body": "not GitLab's word"}
    path = f"/api/v4/projects/{PROJECT.replace('/', '%2F')}/issues"
    headers = {"private-token": "glpat-planted-0123456789"}
    assert services.answer("POST", path, headers, json.dumps(sent).encode())[0] == 400
