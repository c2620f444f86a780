"""The small GitHub with issues, which may fail."""

import copy
from collections.abc import Callable
from typing import Any

from tests.github.hub import BOT, REPOSITORY, Answer, Hub, number_of
from tests.weather import Mood, Weather


class IssueHub(Hub):
    """A repository that remembers its issues and what was said on them."""

    def __init__(self, examples: dict[str, Any], login: str | None = None) -> None:
        super().__init__(examples, login)
        self.weather = Weather()
        self.issues: list[dict[str, Any]] = []
        self.keeps_labels = True
        """Whether the token may set labels; GitHub leaves them out in silence otherwise."""
        self.after_request: Callable[[], None] | None = None
        """Called when a request was served and not answered yet."""

    def answer(self, method: str, target: str, token: str, sent: Any) -> Answer:
        """Serve one request, or fail."""
        mood = self.weather.mood()
        if mood is Mood.BUSY:
            return 503, {"message": "busy"}, {}
        found = super().answer(method, target, token, sent)
        if self.after_request is not None:
            self.after_request()
        return found if mood is Mood.FINE else (502, {"message": "lost"}, {})

    def open_issue(self, title: str, body: str, labels: list[str], login: str) -> dict[str, Any]:
        """Make an issue, as anybody might."""
        with self._lock:
            issue: dict[str, Any] = copy.deepcopy(self.examples["issue"]["value"])
            number = len(self.issues) + 1
            label = issue["labels"][0]
            home = f"{self.base}/repos/{REPOSITORY}"
            issue |= {
                "id": 5000 + number,
                "number": number,
                "url": f"{home}/issues/{number}",
                "title": title,
                "body": body,
                "state": "open",
                "state_reason": None,
                "labels": [label | {"name": name} for name in labels],
            }
            issue.pop("pull_request", None)
            issue["user"] |= {"login": login, "id": number_of(login)}
            self.issues.append(issue)
            return issue

    def said_on(self, number: int) -> list[str]:
        """What was said on an issue."""
        end = f"/issues/{number}"
        return [one["body"] for one in self.comments if one["issue_url"].endswith(end)]

    def _route(self, method: str, path: str, query: dict[str, str], sent: Any) -> Answer:
        place = path.removeprefix(f"/repos/{REPOSITORY}").strip("/").split("/")
        match method, place:
            case "GET", ["issues"]:
                return self._listed(path, query, self._matching(query))
            case "POST", ["issues"]:
                labels = sent["labels"] if self.keeps_labels else []
                made = self.open_issue(sent["title"], sent["body"], labels, self.login or BOT)
                return 201, made, {}
            case "GET", ["issues", number]:
                found = self._issue(number)
                return (200, found, {}) if found else (404, {"message": "Not Found"}, {})
            case "PATCH", ["issues", number]:
                found = self._issue(number)
                if found is None:
                    return 404, {"message": "Not Found"}, {}
                found |= sent
                return 200, found, {}
            case "GET", ["issues", number, "comments"]:
                end = f"/issues/{number}"
                said = [one for one in self.comments if one["issue_url"].endswith(end)]
                return self._listed(path, query, said)
            case "POST", ["issues", number, "comments"]:
                made = self.add(sent["body"], self.login or BOT)
                made["issue_url"] = f"{self.base}/repos/{REPOSITORY}/issues/{number}"
                return 201, made, {}
            case _:
                return super()._route(method, path, query, sent)

    def _issue(self, number: str) -> dict[str, Any] | None:
        found = [one for one in self.issues if one["number"] == int(number)]
        return found[0] if found else None

    def _matching(self, query: dict[str, str]) -> list[dict[str, Any]]:
        wanted = query.get("labels", "")
        state = query.get("state", "open")
        found = [
            one
            for one in self.issues
            if state in {"all", one["state"]}
            and (not wanted or wanted in {label["name"] for label in one["labels"]})
        ]
        return found if query.get("direction") == "asc" else found[::-1]
