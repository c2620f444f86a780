"""GitHub's published description as a gatekeeper in front of ``hub``.

Prism forwards what fits the description and refuses the rest: a wrong request is answered 422, a
wrong answer 500, an unknown call 404, each with a problem document of Prism's own.
"""

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.waiting import LIMIT_S, own_port, wait_until

VIEWER: Final = {
    "post": {
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "required": ["query"],
                        "properties": {"query": {"type": "string"}},
                    }
                }
            },
        },
        "responses": {"200": {"description": "An answer.", "content": {"application/json": {}}}},
    }
}
"""GitHub's GraphQL interface is not in the description; let through is that it is asked at all."""
HERE: Final = Path(__file__).parent
PRISM: Final = HERE / "node_modules" / ".bin" / "prism"
DESCRIPTION: Final = HERE / "node_modules" / ".contract" / "github.json"


def examples() -> dict[str, Any]:
    """Give the examples of the published description by name."""
    if not DESCRIPTION.is_file():
        pytest.fail("GitHub's description is not installed: make contract")
    found: dict[str, Any] = json.loads(DESCRIPTION.read_text())["components"]["examples"]
    return found


@contextmanager
def gatekeeper(upstream: str, log: Path) -> Iterator[str]:
    """Start Prism in front of a server and give its address."""
    port = own_port()
    address = f"http://127.0.0.1:{port}"
    whole = json.loads(DESCRIPTION.read_text())
    whole["paths"]["/graphql"] = VIEWER
    _type_what_may_be_null(whole)
    description = log.with_name("description.json")
    description.write_text(json.dumps(whole))
    words = [
        str(PRISM),
        "proxy",
        str(description),
        upstream,
        "--errors",
        "-h",
        "127.0.0.1",
        "-p",
        str(port),
    ]
    with log.open("wb") as out, subprocess.Popen(words, stdout=out, stderr=out) as prism:
        try:
            _wait(address, prism, log)
            yield address
        finally:
            prism.terminate()
            prism.wait()


def _type_what_may_be_null(part: Any) -> None:
    """Say of each form that it may be null, not of the choice between them.

    Prism's validator cannot read a ``nullable`` beside a ``oneOf``, and lets every request through.
    """
    if isinstance(part, dict):
        if "oneOf" in part and "type" not in part and part.pop("nullable", False):
            part["oneOf"] = [{**form, "nullable": True} for form in part["oneOf"]]
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            _type_what_may_be_null(inner)


def _wait(address: str, prism: subprocess.Popen[bytes], log: Path) -> None:
    def said() -> str:
        return f"Prism did not start:\n{log.read_text(errors='replace')[-2000:]}"

    def answers() -> bool:
        assert prism.poll() is None, said()
        try:
            urllib.request.urlopen(f"{address}/no-such-call", timeout=LIMIT_S)  # noqa: S310 (ours)
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return False

    wait_until(answers, said)
