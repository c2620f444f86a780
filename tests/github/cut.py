"""Cuts GitHub's published API description to the calls that the bot makes.

The whole of it (13 MB of JSON, ``@octokit/openapi``) takes a proxy long to load, and its other
editions fill 400 MB of disk: these are removed. Standard library only; started by the Makefile once
the packages are installed.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
PUBLISHED: Final = HERE / "node_modules" / "@octokit" / "openapi" / "generated"
WHOLE: Final = PUBLISHED / "api.github.com.json"
CUT: Final = HERE / "node_modules" / ".contract" / "github.json"

CALLS: Final[Mapping[str, tuple[str, ...]]] = {
    "/user": ("get",),
    "/repos/{owner}/{repo}/pulls/{pull_number}": ("get",),
    "/repos/{owner}/{repo}/pulls/{pull_number}/commits": ("get",),
    "/repos/{owner}/{repo}/issues": ("get", "post"),
    "/repos/{owner}/{repo}/issues/{issue_number}": ("get", "patch"),
    "/repos/{owner}/{repo}/issues/{issue_number}/comments": ("get", "post"),
    "/repos/{owner}/{repo}/issues/comments/{comment_id}": ("get", "patch", "delete"),
    "/repos/{owner}/{repo}/collaborators/{username}/permission": ("get",),
    "/repos/{owner}/{repo}/commits/{commit_sha}/pulls": ("get",),
    "/repos/{owner}/{repo}/commits/{ref}/check-runs": ("get",),
    "/repos/{owner}/{repo}/check-runs": ("post",),
}
"""A call that is not among them is refused by the proxy as unknown."""


def cut(whole: dict[str, Any]) -> dict[str, Any]:
    """Keep the named calls and every component that they refer to, directly or not."""
    paths = {path: _of(whole["paths"][path], methods) for path, methods in CALLS.items()}
    components: dict[str, dict[str, Any]] = {}
    waiting = list(_references(paths))
    while waiting:
        kind, name = waiting.pop().removeprefix("#/components/").split("/")
        if name not in components.setdefault(kind, {}):
            components[kind][name] = whole["components"][kind][name]
            waiting += _references(components[kind][name])
    kept = {key: whole[key] for key in ("openapi", "info", "servers")}
    return {**kept, "paths": paths, "components": components}


def _of(path: dict[str, Any], methods: tuple[str, ...]) -> dict[str, Any]:
    return {method: path[method] for method in methods}


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        for key, value in part.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
    elif isinstance(part, list):
        for item in part:
            yield from _references(item)


def main() -> None:
    """Write the cut and remove what it was cut from."""
    contract = cut(json.loads(WHOLE.read_text(encoding="utf-8")))
    CUT.parent.mkdir(exist_ok=True)
    CUT.write_text(json.dumps(contract), encoding="utf-8")
    for edition in PUBLISHED.glob("*.json"):
        edition.unlink()
    calls = sum(map(len, CALLS.values()))
    sys.stdout.write(f"{CUT.relative_to(HERE)}: {calls} calls, {CUT.stat().st_size // 1000} kB\n")


if __name__ == "__main__":
    main()
