"""The issues of a GitLab project, by its REST interface."""

from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import quote

from hybridwatch.integrations.notify.channels import Gitlab
from hybridwatch.integrations.notify.client import Http, UndeliveredError, read_secret
from hybridwatch.integrations.notify.issues import Issue, WantedIssue

_PAGE: Final = 100
_GONE: Final = "answered 404"


class GitlabTracker:
    """A project's issues.

    Raises:
        UndeliveredError: The token is missing in the environment.
    """

    def __init__(self, channel: Gitlab) -> None:
        token = read_secret(channel.token_from, r"[!-~]+", "a token")
        self._http = Http([token], {"PRIVATE-TOKEN": token})
        self._api = f"{channel.url.rstrip('/')}/api/v4"
        self._issues = f"{self._api}/projects/{quote(channel.project, safe='')}/issues"
        self._label = channel.label
        self._me: int | None = None

    def find(self, is_marked: Callable[[str], bool]) -> list[Issue]:
        """List our issues with a mark in their text, the oldest first."""
        wanted = {
            "labels": self._label,
            "author_id": self._myself(),
            "state": "all",
            "order_by": "created_at",
            "sort": "asc",
        }
        pages = self._pages(self._issues, wanted)
        return [_issue(one) for one in pages if is_marked(one["description"] or "")]

    def get(self, number: str) -> Issue | None:
        """Give an issue of ours; ``None`` if it is gone, or of another author."""
        try:
            found = self._http.call("GET", f"{self._issues}/{number}").json()
        except UndeliveredError as error:
            if str(error).startswith(_GONE):
                return None
            raise
        return _issue(found) if found["author"]["id"] == self._myself() else None

    def create(self, wanted: WantedIssue) -> Issue:
        """Make an issue."""
        sent = {"title": wanted.title, "description": wanted.body, "labels": self._label}
        made = self._http.call("POST", self._issues, json=sent).json()
        kept = self._label in made["labels"]
        complaint = (
            ""
            if kept
            else f"GitLab left the label {self._label} out: the token needs the role Reporter"
        )
        return Issue(str(made["iid"]), made["description"], complaint)

    def change(self, number: str, wanted: WantedIssue) -> None:
        """Make an issue as it shall be."""
        sent = {
            "title": wanted.title,
            "description": wanted.body,
            "state_event": "reopen" if wanted.is_open else "close",
        }
        self._http.call("PUT", f"{self._issues}/{number}", json=sent)

    def comments(self, number: str) -> Iterator[str]:
        """Give the texts of our comments."""
        me = self._myself()
        order = {"order_by": "created_at", "sort": "desc"}
        for note in self._pages(f"{self._issues}/{number}/notes", order):
            if note["author"]["id"] == me:
                yield note["body"]

    def comment(self, number: str, text: str) -> None:
        """Add a comment."""
        self._http.call("POST", f"{self._issues}/{number}/notes", json={"body": text})

    def _myself(self) -> int:
        if self._me is None:
            self._me = int(self._http.call("GET", f"{self._api}/user").json()["id"])
        return self._me

    def _pages(self, url: str, wanted: dict[str, Any]) -> Iterator[dict[str, Any]]:
        page = "1"
        while page:
            params = {**wanted, "per_page": _PAGE, "page": page}
            answer = self._http.call("GET", url, params=params)
            yield from answer.json()
            page = answer.headers.get("x-next-page", "")


def _issue(found: dict[str, Any]) -> Issue:
    return Issue(str(found["iid"]), found["description"] or "")
