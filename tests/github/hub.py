"""A small GitHub: one repository that remembers comments, checks and issues, and who may do what.

Real HTTP, on a port of its own. What its answers look like is taken from the examples in GitHub's
published description (``cut.py``), so that they have every field; ``contract.py`` puts a proxy in
front that holds requests and answers against that description.
"""

import copy
import json
import re
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.live_server import LiveServer, QuietHandler
from tests.live_server import serving as serve_live
from tests.weather import Mood, Weather

TOKEN: Final = "ghs_planted0123456789token"  # noqa: S105 (opens nothing)
PERSONAL: Final = "ghp_planted9876543210token"
REPOSITORY: Final = "octo/engine"
NUMBER: Final = 7
HEAD: Final = "a" * 40
EARLIER: Final = "b" * 40
BOT: Final = "github-actions[bot]"
IDS: Final = {BOT: 41898282, "ada": 1815}
"""Numbers of accounts; others get one that hangs on their name."""

Answer = tuple[int, Any, dict[str, str]]
NOT_FOUND: Final[Answer] = (404, {"message": "Not Found", "status": "404"}, {})


@dataclass
class Fault:
    """What a request gets instead of its answer.

    Attributes:
        method: Of the request.
        path: A pattern that its path must match.
        status: Of the answer.
        body: JSON of the answer.
        headers: Of the answer.
        times: How often.
        served: Whether the request takes effect all the same.
    """

    method: str
    path: str
    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1
    served: bool = False


def number_of(login: str) -> int:
    """Give the number of an account."""
    return IDS.get(login, 10_000 + zlib.crc32(login.encode()))


class Hub:
    """The state, and what is done with it.

    Args:
        examples: Of the published description, by name.
        login: Whose token it is; ``None`` for a job's, which is nobody's and writes as a bot.
    """

    def __init__(self, examples: dict[str, Any], login: str | None = None) -> None:
        self.examples = examples
        self.login = login
        self.base = ""
        self.comments: list[dict[str, Any]] = []
        self.checks: list[dict[str, Any]] = []
        self.commits = [EARLIER, HEAD]
        self.head = HEAD
        self.public = False
        """Whether anybody may read."""
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str, str]] = []
        self.page: int | None = None
        """Items on a page, whatever was asked for."""
        self.before_post: Callable[[], None] | None = None
        """Called once, right before a comment is made: the other bot."""
        self.before_edit: Callable[[], None] | None = None
        """Called once, right before our comment is edited: another job."""
        self.after_request: Callable[[], None] | None = None
        """Called when a request was served and not answered yet."""
        self.weather = Weather()
        self.rights = {"ada": "write", "grace": "admin", "mallory": "read", "eve": "none"}
        """What accounts may do; of others there are none."""
        self.numbers: dict[str, int] = {}
        """Accounts that have another number by now than the name had."""
        self.pushed_at: str | None = "2011-01-26T19:06:43Z"
        self.state = "open"
        self.has_branch = True
        """Whether the repository of the pull request's branch is still there."""
        self.pulls_of: dict[str, list[dict[str, Any]]] = {}
        """Of a commit: what differs from the published example of a pull request."""
        self.issues: list[dict[str, Any]] = []
        self.keeps_labels = True
        """Whether the token may set labels; GitHub leaves them out in silence otherwise."""
        self._lock = threading.RLock()
        self._next = 1000

    def add(self, body: str, login: str = BOT, kind: str = "Bot") -> dict[str, Any]:
        """Make a comment, as anybody might."""
        with self._lock:
            self._next += 1
            comment = copy.deepcopy(self.examples["issue-comment"]["value"])
            comment |= {
                "id": self._next,
                "url": f"{self._home}/issues/comments/{self._next}",
                "issue_url": f"{self._home}/issues/{NUMBER}",
                "body": body,
            }
            comment["user"] |= {"login": login, "type": kind, "id": number_of(login)}
            self.comments.append(comment)
            made: dict[str, Any] = comment
            return made

    def event(self, comment: dict[str, Any], action: str = "created") -> dict[str, Any]:
        """What GitHub sends about a comment, as far as it matters."""
        return copy.deepcopy(
            {
                "action": action,
                "comment": comment,
                "issue": {"number": NUMBER, "pull_request": {"url": "https://github.test/7"}},
                "repository": {"full_name": REPOSITORY},
            }
        )

    def asks(self, body: str, login: str = "ada") -> dict[str, Any]:
        """Comment as a person, and give the event."""
        return self.event(self.add(body, login, "User"))

    def open_issue(self, title: str, body: str, labels: list[str], login: str) -> dict[str, Any]:
        """Make an issue, as anybody might."""
        with self._lock:
            issue: dict[str, Any] = copy.deepcopy(self.examples["issue"]["value"])
            number = len(self.issues) + 1
            label = issue["labels"][0]
            issue |= {
                "id": 5000 + number,
                "number": number,
                "url": f"{self._home}/issues/{number}",
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
        return [one["body"] for one in self._comments_on(number)]

    def bodies(self, login: str = BOT) -> list[str]:
        """What somebody's comments say."""
        return [comment["body"] for comment in self.comments if comment["user"]["login"] == login]

    def answer(self, method: str, target: str, token: str, sent: Any) -> Answer:
        """Serve one request, or fail."""
        mood = self.weather.mood()
        if mood is Mood.BUSY:
            return 503, {"message": "busy"}, {}
        found = self._answer(method, target, token, sent)
        if self.after_request is not None:
            self.after_request()
        return found if mood is Mood.FINE else (502, {"message": "lost"}, {})

    def _answer(self, method: str, target: str, token: str, sent: Any) -> Answer:
        url = urlsplit(target)
        with self._lock:
            self.requests.append((method, url.path, token))
        fault = self._fault(method, url.path)
        if fault and not fault.served:
            return fault.status, fault.body, fault.headers
        anybody = self.public and method == "GET" and not token
        if not anybody and token.removeprefix("token ") not in {TOKEN, PERSONAL}:
            return 401, {"message": "Bad credentials", "status": "401"}, {}
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        found = self._route(method, url.path, query, sent)
        return (fault.status, fault.body, fault.headers) if fault else found

    @property
    def _home(self) -> str:
        return f"{self.base}/repos/{REPOSITORY}"

    def _fault(self, method: str, path: str) -> Fault | None:
        with self._lock:
            for fault in self.faults:
                if fault.method == method and fault.times and re.search(fault.path, path):
                    fault.times -= 1
                    return fault
        return None

    def _route(self, method: str, path: str, query: dict[str, str], sent: Any) -> Answer:
        place = path.removeprefix(f"/repos/{REPOSITORY}")
        if (method, path) == ("POST", "/graphql"):
            return self._viewer(sent)
        match method, place.strip("/").split("/"):
            case "GET", ["user"]:
                return self._user()
            case "GET", ["pulls", number] if int(number) == NUMBER:
                return 200, self._pull(), {}
            case "GET", ["pulls", _, "commits"]:
                return self._listed(path, query, [self._commit(sha) for sha in self.commits])
            case "GET", ["commits", sha, "check-runs"]:
                return self._checks_of(sha, query)
            case "POST", ["check-runs"]:
                return 201, self._check(sent), {}
            case "GET", ["collaborators", login, "permission"]:
                return self._permission(login)
            case "GET", ["commits", sha, "pulls"]:
                return self._listed(path, query, [*map(self._simple, self.pulls_of.get(sha, []))])
            case _, ["issues", *rest]:
                return self._issues(method, rest, path, query, sent)
            case _:
                return NOT_FOUND

    def _issues(
        self, method: str, place: list[str], path: str, query: dict[str, str], sent: Any
    ) -> Answer:
        match method, place:
            case "GET", ["comments", number]:
                return _found(self.comments, "id", number)
            case (("PATCH" | "DELETE"), ["comments", number]):
                return self._change(method, int(number), sent)
            case "GET", []:
                return self._listed(path, query, self._matching(query))
            case "POST", []:
                labels = sent["labels"] if self.keeps_labels else []
                made = self.open_issue(sent["title"], sent["body"], labels, self.login or BOT)
                return 201, made, {}
            case "GET", [number]:
                return _found(self.issues, "number", number)
            case "PATCH", [number]:
                status, found, _ = _found(self.issues, "number", number)
                if status == 200:
                    found |= sent
                return status, found, {}
            case "GET", [number, "comments"]:
                return self._listed(path, query, self._comments_on(int(number)))
            case "POST", [number, "comments"]:
                return self._post(number, sent)
            case _:
                return NOT_FOUND

    def _comments_on(self, number: int) -> list[dict[str, Any]]:
        end = f"/issues/{number}"
        return [one for one in self.comments if one["issue_url"].endswith(end)]

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

    def _permission(self, login: str) -> Answer:
        if login not in self.rights:
            return NOT_FOUND
        name = "repository-collaborator-permission-response-if-user-has-admin-permissions"
        found = copy.deepcopy(self.examples[name]["value"])
        found |= {"permission": self.rights[login], "role_name": self.rights[login]}
        # The published example lags behind its own description, in which a user has a role too.
        number = self.numbers.get(login, number_of(login))
        found["user"] |= {"login": login, "id": number, "role_name": self.rights[login]}
        return 200, found, {}

    def _simple(self, change: dict[str, Any]) -> dict[str, Any]:
        (pull,) = copy.deepcopy(self.examples["pull-request-simple-items"]["value"])
        result: dict[str, Any] = pull | {"requested_teams": []} | change  # as in ``_pull``
        return result

    def _user(self) -> Answer:
        if self.login is None:
            return 403, {"message": "Resource not accessible by integration"}, {}
        user = self.examples["private-user-response-with-public-profile-information"]["value"]
        return 200, user | {"login": self.login, "type": "User", "id": number_of(self.login)}, {}

    def _viewer(self, sent: Any) -> Answer:
        """Say as whom a token writes; of GraphQL there is no description to hold it against."""
        if sent["query"].split() != ["query", "{", "viewer", "{", "databaseId", "}", "}"]:
            return 200, {"errors": [{"message": "unknown query"}]}, {}
        return 200, {"data": {"viewer": {"databaseId": number_of(self.login or BOT)}}}, {}

    def _pull(self) -> dict[str, Any]:
        pull = copy.deepcopy(self.examples["pull-request"]["value"])
        pull |= {
            "number": NUMBER,
            "url": f"{self._home}/pulls/{NUMBER}",
            "issue_url": f"{self._home}/issues/{NUMBER}",
            "requested_teams": [],  # the published example lags behind its own description here
            "state": self.state,
        }
        pull["head"]["sha"] = self.head
        pull["head"]["repo"] |= {"pushed_at": self.pushed_at}
        if not self.has_branch:
            pull["head"]["repo"] = None
        result: dict[str, Any] = pull
        return result

    def _commit(self, sha: str) -> dict[str, Any]:
        (commit,) = copy.deepcopy(self.examples["commit-items"]["value"])
        result: dict[str, Any] = commit | {"sha": sha}
        return result

    def _listed(self, path: str, query: dict[str, str], items: list[Any]) -> Answer:
        size = self.page or int(query.get("per_page", 30))
        page = int(query.get("page", 1))
        shown = items[size * (page - 1) : size * page]
        headers = {}
        if len(items) > size * page:
            asked = urlencode({**query, "per_page": size, "page": page + 1})
            following = f"{self.base}{path}?{asked}"
            headers["Link"] = f'<{following}>; rel="next"'
        return 200, shown, headers

    def _post(self, number: str, sent: Any) -> Answer:
        other, self.before_post = self.before_post, None
        if other is not None:
            other()
        made = self.add(sent["body"], self.login or BOT, "User" if self.login else "Bot")
        made["issue_url"] = f"{self._home}/issues/{number}"
        return 201, made, {}

    def _change(self, method: str, number: int, sent: Any) -> Answer:
        if method == "PATCH" and self.before_edit is not None:
            other, self.before_edit = self.before_edit, None
            other()
        with self._lock:
            found = [comment for comment in self.comments if comment["id"] == number]
            if not found:
                return NOT_FOUND
            if method == "DELETE":
                self.comments.remove(found[0])
                return 204, None, {}
            found[0]["body"] = sent["body"]
            return 200, found[0], {}

    def _checks_of(self, sha: str, query: dict[str, str]) -> Answer:
        mine = [
            check
            for check in self.checks
            if check["head_sha"] == sha and check["name"] == query.get("check_name", check["name"])
        ]
        latest = mine[-1:] if query.get("filter", "latest") == "latest" else mine
        return 200, {"total_count": len(latest), "check_runs": latest}, {}

    def _check(self, sent: Any) -> dict[str, Any]:
        with self._lock:
            self._next += 1
            check = copy.deepcopy(
                self.examples["check-run-example-of-completed-conclusion"]["value"]
            )
            output = check["output"] | sent.pop("output")
            check |= {**sent, "id": self._next, "output": output}
            self.checks.append(check)
            result: dict[str, Any] = check
            return result


def _found(items: list[dict[str, Any]], key: str, number: str) -> Answer:
    found = [one for one in items if one[key] == int(number)]
    return (200, found[0], {}) if found else NOT_FOUND


@contextmanager
def serving(hub: Hub) -> Iterator[str]:
    """Serve on a free port of this machine and give the address."""

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            raw = self.body()
            token = self.headers.get("Authorization", "")
            status, body, headers = hub.answer(
                self.command, self.path, token, json.loads(raw) if raw else None
            )
            content = b"" if body is None else json.dumps(body).encode()
            kind = {} if body is None else {"Content-Type": "application/json; charset=utf-8"}
            self.reply(status, content, {**headers, **kind})

        do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815 (http.server's names)

    with serve_live(LiveServer(Handler)) as server:
        yield server.url
