"""``hybridwatch suspects``: the author of a change hears once what it did."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cmarkgfm import github_flavored_markdown_to_html

from hybridwatch.integrations.github import suspicion
from hybridwatch.integrations.github.our_comment import read_comment
from tests.command_line import run_verb
from tests.github.hub import BOT, EARLIER, HEAD, NUMBER, REPOSITORY, TOKEN, Hub
from tests.situations import HOSTILE

MERGED = {"number": NUMBER, "merged_at": "2026-11-20T10:00:00Z"}
OURS = {"base": {"repo": {"full_name": REPOSITORY}}}


def commit(sha: str, title: str = "A change") -> dict[str, Any]:
    return {"name": sha, "author": "Ada", "title": title, "pull_request": None, "paths": []}


def answer(**changes: Any) -> dict[str, Any]:
    """What ``bisect --json`` prints, as far as it is read."""
    timed = {
        "metric": "output_throughput",
        "find": "regression",
        "effect": -0.0812,
        "interval": [-0.0951, -0.0671],
        "certainty": 0.994,
        "good": EARLIER,
        "bad": HEAD,
        "culprit": commit(HEAD),
        "suspects": [commit(HEAD)],
    }
    return {
        "schema_version": 1,
        "scenario": "smoke/dummy-run",
        "found": True,
        "confirmed": True,
        "minutes": 9.0,
        "searches": [],
        "answer": timed | changes.pop("answer", {}),
        "confirmation": {"holds": True, "seen": "-8.0% in 20 blocks", "builds": [], "record": None},
        "files": None,
        "fixes": [],
        "notes": [],
        "repeat": f"hybridwatch bisect smoke/dummy-run --good {EARLIER} --bad {HEAD} --anew",
        **changes,
    }


@pytest.fixture
def tell(tmp_path, monkeypatch) -> Callable[..., list[dict[str, Any]]]:
    """Call the verb with an answer; gives the rows that it prints."""
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)

    def told(hub: Hub, found: dict[str, Any], *more: str) -> list[dict[str, Any]]:
        monkeypatch.setenv("GITHUB_API_URL", hub.base)
        file = tmp_path / "answer.json"
        file.write_text(json.dumps(found))
        words = ["suspects", str(file), "--repo", REPOSITORY, "--json", *more]
        done = run_verb(*words, catch_exceptions=False, status=0)
        rows: list[dict[str, Any]] = json.loads(done.stdout)["suspects"]
        return rows

    return told


def merged(hub: Hub, **more: Any) -> dict[str, Any]:
    (simple,) = hub.examples["pull-request-simple-items"]["value"]
    base = simple["base"] | {"repo": simple["base"]["repo"] | {"full_name": REPOSITORY}}
    return {**MERGED, "base": base, **more}


def test_the_pull_request_of_the_commit_hears_it_once(contract, tell) -> None:
    hub = contract
    hub.pulls_of[HEAD] = [merged(hub)]
    (row,) = tell(hub, answer())
    assert (row["commit"], row["pull_request"], row["done"]) == (HEAD, NUMBER, "posted")
    (body,) = hub.bodies()
    first, *rest = body.splitlines()
    assert first == (
        f"**<code>output\\_throughput</code> became worse (-8.1%; with 95 % between -9.5% and "
        f"-6.7%) in <code>smoke/dummy-run</code> with this: <code>{HEAD[:10]}</code> A change.**"
    )
    assert "- how sure: 99.4%, by all sessions of the search" in rest
    assert "confirmed: -8.0% in 20 blocks" in body
    assert f"hybridwatch bisect smoke/dummy-run --good {EARLIER} --bad {HEAD} --anew" in body
    for _ in range(2):
        assert tell(hub, answer(scenario="smoke/other"))[0]["done"] == "silent"
    assert hub.bodies() == [body]


def test_a_bot_that_does_not_know_its_comment_would_write_again(hub, tell, monkeypatch) -> None:
    """Planted: the mark is never found."""
    hub.pulls_of[HEAD] = [merged(hub)]
    monkeypatch.setattr(suspicion, "_MARKER", re.compile("(never)(seen)"))
    for _ in range(2):
        tell(hub, answer())
    assert len(hub.bodies()) == 2


def test_a_copied_mark_does_not_keep_it_from_the_author(hub, tell) -> None:
    hub.pulls_of[HEAD] = [merged(hub)]
    hub.add(f"<!-- hybridwatch suspect: {HEAD} one -->", "mallory", "User")
    assert tell(hub, answer())[0]["done"] == "posted"


def test_it_is_no_part_of_the_comment_with_the_verdict(hub, tell) -> None:
    hub.add("**Verdict**\n\n<!-- hybridwatch: bad -->")
    hub.pulls_of[HEAD] = [merged(hub)]
    tell(hub, answer())
    verdict, suspected = hub.bodies()
    assert read_comment(verdict).verdict == "**Verdict**"
    assert "became worse" in suspected


def test_a_few_suspects_are_each_told_and_the_one_again(hub, tell) -> None:
    hub.pulls_of = {HEAD: [merged(hub)], EARLIER: []}
    few = {"culprit": None, "suspects": [commit(EARLIER, "Earlier"), commit(HEAD)]}
    rows = tell(hub, answer(answer=few, confirmed=False))
    assert [row["done"] for row in rows] == ["no merged pull request has this commit", "posted"]
    (body,) = hub.bodies()
    assert "with one of 2 commits, of which this is one" in body
    assert "- not distinguished: " in body
    assert f"<code>{EARLIER[:10]}</code> Earlier" in body
    assert tell(hub, answer())[0]["done"] == "edited"
    assert tell(hub, answer(answer=few))[-1]["done"] == "silent"
    assert len(hub.bodies()) == 1


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"answer": {"find": "fix"}}, "it was a fix that was looked for"),
        ({"answer": None}, "nothing was confirmed"),
        ({"confirmation": None}, "nothing was confirmed"),
        ({"confirmation": {"holds": False, "seen": "x"}}, "nothing was confirmed"),
        ({"answer": {"culprit": {"name": "cpu-0.32.0"}}}, "it names a release, not a commit"),
        (
            {"answer": {"culprit": None, "suspects": [commit(f"{n:040x}") for n in range(4)]}},
            "4 commits could not be distinguished; at most 3 get a comment",
        ),
    ],
)
def test_what_is_not_a_confirmed_commit_is_reported_to_no_one(hub, tell, changes, why) -> None:
    found = answer() | {"answer": None} if changes == {"answer": None} else answer(**changes)
    (row,) = tell(hub, found)
    assert row["done"].startswith(f"no comment: {why}")
    assert hub.requests == []


@pytest.mark.parametrize(
    "change", [{"merged_at": None}, {"base": {"repo": {"full_name": "mallory/engine"}}}]
)
def test_only_a_merged_pull_request_of_this_repository_is_reported(hub, tell, change) -> None:
    base = merged(hub)["base"]
    if "base" in change:
        change = {"base": base | {"repo": base["repo"] | change["base"]["repo"]}}
    hub.pulls_of[HEAD] = [merged(hub) | change]
    assert tell(hub, answer())[0]["done"] == "no merged pull request has this commit"
    assert hub.bodies() == []


def test_a_dry_run_asks_nobody(hub, tell) -> None:
    (row,) = tell(hub, answer(), "--dry-run")
    assert row["done"] == "would get a comment"
    assert hub.requests == []


def test_hostile_titles_are_reported_harmlessly(hub, tell) -> None:
    hub.pulls_of[HEAD] = [merged(hub)]
    tell(hub, answer(answer={"culprit": commit(HEAD, HOSTILE), "metric": HOSTILE}))
    (body,) = hub.bodies(BOT)
    html = github_flavored_markdown_to_html(body.partition("```")[0])
    assert "<script" not in html
    assert "<a " not in html
    assert "@everyone" not in body.partition("```")[0]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("nothing", "file: expected what bisect --json prints"),
        ('{"schema_version": 2}', "schema_version: expected what bisect --json prints"),
        (json.dumps(answer(scenario="x" * 3000)), "scenario: expected what bisect"),
        (json.dumps(answer(answer={"effect": float("nan")})), "answer.effect: expected what"),
    ],
)
def test_a_file_that_is_no_answer_is_a_wrong_call(tmp_path: Path, content, told) -> None:
    file = tmp_path / "answer.json"
    file.write_text(content)
    assert told in run_verb("suspects", file, "--repo", REPOSITORY, "--dry-run", status=2).stderr
