"""The small GitHub with people who may do this or that, and pull requests of commits."""

import copy
from collections.abc import Callable
from typing import Any

from tests.github.hub import NUMBER, REPOSITORY, Answer, Hub, number_of


class AskingHub(Hub):
    """A repository that people comment on."""

    def __init__(self, examples: dict[str, Any], login: str | None = None) -> None:
        super().__init__(examples, login)
        self.rights = {"ada": "write", "grace": "admin", "mallory": "read", "eve": "none"}
        """What accounts may do; of others there are none."""
        self.numbers: dict[str, int] = {}
        """Accounts that have another number by now than the name had."""
        self.pushed_at = "2011-01-26T19:06:43Z"
        self.state = "open"
        self.has_branch = True
        """Whether the repository of the pull request's branch is still there."""
        self.pulls_of: dict[str, list[dict[str, Any]]] = {}
        """Of a commit: what differs from the published example of a pull request."""
        self.before_edit: Callable[[], None] | None = None
        """Called once, right before our comment is edited: another job."""

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

    def _route(self, method: str, path: str, query: dict[str, str], sent: Any) -> Answer:
        place = path.removeprefix(f"/repos/{REPOSITORY}").strip("/").split("/")
        match method, place:
            case "GET", ["issues", "comments", number]:
                found = [one for one in self.comments if one["id"] == int(number)]
                return (200, found[0], {}) if found else (404, {"message": "Not Found"}, {})
            case "GET", ["collaborators", login, "permission"]:
                return self._permission(login)
            case "GET", ["commits", sha, "pulls"]:
                return self._listed(path, query, [*map(self._simple, self.pulls_of.get(sha, []))])
            case "PATCH", ["issues", "comments", _]:
                other, self.before_edit = self.before_edit, None
                if other is not None:
                    other()
            case _:
                pass
        return super()._route(method, path, query, sent)

    def _permission(self, login: str) -> Answer:
        if login not in self.rights:
            return 404, {"message": "Not Found", "status": "404"}, {}
        name = "repository-collaborator-permission-response-if-user-has-admin-permissions"
        found = copy.deepcopy(self.examples[name]["value"])
        found |= {"permission": self.rights[login], "role_name": self.rights[login]}
        # The published example lags behind its own description, in which a user has a role too.
        number = self.numbers.get(login, number_of(login))
        found["user"] |= {"login": login, "id": number, "role_name": self.rights[login]}
        return 200, found, {}

    def _pull(self) -> dict[str, Any]:
        pull = super()._pull()
        pull["state"] = self.state
        pull["head"]["repo"] |= {"pushed_at": self.pushed_at}
        if not self.has_branch:
            pull["head"]["repo"] = None
        return pull

    def _simple(self, change: dict[str, Any]) -> dict[str, Any]:
        (pull,) = copy.deepcopy(self.examples["pull-request-simple-items"]["value"])
        result: dict[str, Any] = pull | {"requested_teams": []} | change  # as in ``_pull``
        return result
