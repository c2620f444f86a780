"""Issues behind GitHub's published description."""

from collections.abc import Iterator

import pytest
import requests

from hybridwatch.integrations.notify.channels import Github
from hybridwatch.integrations.notify.issues import WantedIssue, open_tracker
from tests.github.contract import examples, gatekeeper
from tests.github.hub import PERSONAL, REPOSITORY, TOKEN, Hub, serving
from tests.waiting import LIMIT_S


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """The small GitHub behind its contract."""
    state = Hub(examples())
    with (
        serving(state) as upstream,
        gatekeeper(upstream, tmp_path_factory.mktemp("prism") / "log") as address,
    ):
        state.base = address
        yield state


@pytest.mark.parametrize(("token", "login"), [(TOKEN, None), (PERSONAL, "ada")])
def test_all_that_is_done_with_issues_fits_the_published_description(
    hub, monkeypatch, token, login
) -> None:
    hub.login = login
    monkeypatch.setenv("T_GITHUB", token)
    channel = Github(name="x", repository=REPOSITORY, token_from="T_GITHUB", api=hub.base)  # noqa: S106
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
        ("POST", "issues", {"body": "no title"}),
        ("POST", "issues", {"title": "x", "labels": "no list"}),
        ("PATCH", "issues/1", {"state": "over"}),
        ("PATCH", "issues/1", {"state_reason": "bored"}),
        ("POST", "issues/1/comments", {"text": "no body"}),
    ],
)
def test_the_description_refuses_what_github_would(hub, method, path, sent) -> None:
    """Planted: without the gatekeeper nobody would notice."""
    refused = requests.request(
        method,
        f"{hub.base}/repos/{REPOSITORY}/{path}",
        json=sent,
        headers={"Authorization": f"token {TOKEN}"},
        timeout=LIMIT_S,
    )
    assert refused.status_code == 422
