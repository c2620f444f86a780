"""What a night searches by itself: a confirmed alert, once, in bounded minutes; who reads it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hybridwatch.analysis.change_review import ChangeReview
from hybridwatch.analysis.policy import AlertBisect, Policy
from hybridwatch.cli import nightly
from hybridwatch.cli.nightly import bisect_alerts
from hybridwatch.database.queries import open_index
from hybridwatch.history.checkout import Checkout
from hybridwatch.history.newest_runs import findings_for
from hybridwatch.integrations.notify.gather import TopicPlace, gather_topics
from hybridwatch.integrations.notify.news import News, find_news
from hybridwatch.orchestration.bisect.alert_answers import ANSWERS, read_answers
from hybridwatch.orchestration.bisect.journal import read_answer
from hybridwatch.records.store import list_records, read_run, write_run
from hybridwatch.reports.pull_request import render
from tests.builders import TESTBED, a_build
from tests.checkout import git, make_checkout
from tests.dashboard.parity import words_of
from tests.unit.analysis.alerts.builders import acknowledge
from tests.unit.integrations.notify.pretended import a_message, told
from tests.unit.orchestration.bisect.test_command import (
    SCENARIO,
    a_history,
    declare,
    engines,
    home,
)
from tests.unit.pages.suite_stores import NOW, WRONG, act, alerts, put, view

__all__ = ["engines", "home"]
HOURS = 3600.0


@pytest.fixture
def results(tmp_path) -> Path:
    folder: Path = tmp_path / "results"
    return folder


def a_night(results: Path, number: int, commit: str, **changes) -> str:
    """Measure the nightly of a commit next to the release."""
    builds = (
        a_build("tiny-1.0", release="1.0"),
        a_build("nightly", release=f"1.1.dev{number}+g{commit[:9]}"),
    )
    return put(results, number, **{"scenario": SCENARIO, "builds": builds, **changes})


def two_nights(results: Path, first: str = "a" * 9, last: str = "b" * 9, **changes) -> str:
    """A good night, then one that is not; gives its run."""
    a_night(results, 1, first)
    return a_night(results, 2, last, **changes)


def policy_of(repo: Path | str = "/srv/vllm", minutes: float = 60) -> Policy:
    return Policy(bisect=AlertBisect(minutes, str(repo), "tiny-1.0"))


def held(results: Path, policy: Policy, *runs: str, seconds=HOURS, **how) -> ChangeReview:
    """What the findings of a night with these runs are once it has searched."""
    found = [findings_for((run,), results, policy).reports[0] for run in runs]
    findings = ChangeReview(tuple(found), policy=policy)
    return bisect_alerts(findings, seconds, print, results, **how)


def page(results: Path, policy: Policy) -> str:
    checkout = Checkout(policy=policy)
    (alert,) = alerts(results, checkout)
    return "\n".join(words_of(view(results, "alerts", checkout, alert=alert.subject.key)))


def the_topic(results: Path, policy: Policy):
    place = TopicPlace(results, open_index(results), Checkout(policy=policy))
    (topic,) = (one for one in gather_topics(place, NOW) if not one.is_gap)
    return topic


def test_page_message_and_comment_name_the_commit(home, engines, results, tmp_path, capsys) -> None:
    clone = a_history(tmp_path / "clone", *(f"rows = {rows}\n" for rows in (1, 2, 3, 4)))
    _, first, _, sha, last = git(clone, "log", "--reverse", "--format=%H").split()
    policy = policy_of(clone)
    bad = two_nights(results, first, last, broken=7.0)
    before = the_topic(results, policy)
    heard = replace(told(), seen=before.seen, content=before.content())
    assert find_news(before, heard) is None

    findings = held(results, policy, bad)
    (line,) = findings.searched[bad]
    assert f"changed with {sha[:10]} Change 3 (#103); measured again, confirmed: 0 -> 7" in line
    assert f"bisect {SCENARIO}: {line}" in capsys.readouterr().out
    assert line in page(results, policy)
    comment = render(findings).text.replace("<wbr>", "")
    assert "**Bisected:** " in comment
    assert sha[:10] in comment
    assert read_answers(results, [bad, "0badcafe"]) == {bad: [line]}
    (kept,) = (results / ANSWERS).glob("*.json")
    assert read_answer(kept).suspects[0].name == sha  # as `hybridwatch suspects` reads it
    assert open_index(results).counts["runs"] == 2, "a search opens no alert of its own"

    topic = the_topic(results, policy)
    message = a_message(News.BISECTED, content=topic.content())
    assert message.headline.startswith("Bisected: ")
    assert ("Bisected", line) in list(message.facts())
    assert find_news(topic, heard) is News.BISECTED
    assert find_news(topic, replace(heard, content=topic.content())) is None


class Searches:
    """Stands for ``search``: notes what it is given, and takes so many minutes of a clock."""

    def __init__(self) -> None:
        self.minutes, self.now = 1.0, 0.0
        self.given: list[float] = []

    def clock(self) -> float:
        return self.now

    def search(self, scenario, options, *_, **__):
        self.given.append(options.max_minutes)
        self.now += 60 * self.minutes
        nothing = dict.fromkeys(("answer", "confirmation", "repeat"))
        return {"schema_version": 1, "scenario": scenario, "confirmed": False, **nothing}


@pytest.fixture
def searches(monkeypatch) -> Searches:
    made = Searches()
    monkeypatch.setattr(nightly, "search", made.search)
    return made


def test_nothing_is_searched_by_default(results, searches) -> None:
    bad = two_nights(results, broken=7.0)
    findings = held(results, Policy(), bad)
    assert (findings.searched, searches.given) == ({}, [])
    assert "Bisected" not in page(results, Policy()) + render(findings).text
    assert the_topic(results, Policy()).searched == ""


def test_second_night_does_not_search_again_and_says_it_again(results, searches) -> None:
    policy = policy_of()
    bad = two_nights(results, broken=7.0)
    (line,) = held(results, policy, bad).searched[bad]
    again = a_night(results, 3, "b" * 9, broken=7.0)
    assert held(results, policy, again).searched == {again: [line]}
    assert len(searches.given) == 1
    (kept,) = (results / ANSWERS).glob("*.json")
    kept.unlink()  # were nothing kept, it would be searched again
    held(results, policy, again)
    assert len(searches.given) == 2


def test_alert_that_came_back_is_searched_again(results, searches) -> None:
    held(results, policy_of(), two_nights(results, broken=7.0))
    a_night(results, 3, "c" * 9)
    held(results, policy_of(), a_night(results, 4, "d" * 9, broken=7.0))
    assert len(searches.given) == 2


def test_what_chance_may_explain_is_not_searched(results, searches) -> None:
    bad = two_nights(results, slower=1.5)
    assert len(alerts(results)) == 1
    held(results, policy_of(), bad)
    assert searches.given == []
    held(results, policy_of(), a_night(results, 3, "b" * 9, slower=1.5))
    assert len(searches.given) == 1


def test_what_a_person_answered_is_not_searched(results, searches) -> None:
    bad = two_nights(results, broken=7.0)
    (alert,) = alerts(results)
    act(results, alert, acknowledge("seen"), "Ann")
    assert held(results, policy_of(), bad).searched == {}
    assert searches.given == []


def test_alert_of_an_earlier_night_is_not_searched(results, searches) -> None:
    two_nights(results, broken=7.0)
    good = a_night(results, 3, "c" * 9, scenario="smoke/other")
    assert held(results, policy_of(), good).searched == {}
    assert searches.given == []


@pytest.mark.parametrize(
    ("takes", "seconds", "given"),
    [
        (4.0, HOURS, [10.0, 6.0]),
        (10.0, HOURS, [10.0]),
        (4.0, 300.0, [5.0, 1.0]),
        (4.0, -1.0, []),
    ],
)
def test_minutes_are_for_all_alerts_of_a_night(results, searches, takes, seconds, given) -> None:
    two_nights(results, broken=7.0, answers=WRONG)
    both = a_night(results, 3, "b" * 9, broken=7.0, answers=WRONG)
    policy, searches.minutes = policy_of(minutes=10), takes
    found = held(results, policy, both, seconds=seconds, clock=searches.clock)
    assert searches.given == given
    kept = [json.loads(path.read_text()) for path in (results / ANSWERS).glob("*.json")]
    late = [one for one in kept if "the time for searches was up" in one.get("why_not", "")]
    assert (len(kept), len(late)) == (2, 2 - len(given))
    assert [len(lines) for lines in found.searched.values()] == [2]
    searches.minutes = 1.0
    held(results, policy, both, clock=searches.clock)  # the next night goes on with the rest
    assert len(searches.given) == 2


def test_one_cause_in_two_scenarios_is_searched_once(results, searches) -> None:
    bad = two_nights(results, broken=7.0)
    (record,) = (path for path in list_records(results) if bad in path.name)
    run = read_run(record)
    other = replace(run, id="0000abcd", scenario=replace(run.scenario, id="smoke/other"))
    write_run(results, other)
    assert len(alerts(results)) == 2
    found = held(results, policy_of(), bad, other.id)
    assert len(searches.given) == 1
    assert set(found.searched) == {bad, other.id}
    assert found.searched[bad] == found.searched[other.id]
    assert render(found).text.count("**Bisected") == 1


def elsewhere(results: Path) -> str:
    tonight = a_night(results, 1, "a" * 9)
    testbed = replace(TESTBED, id="far-8c")
    a_night(results, 2, "a" * 9, testbed=testbed)
    a_night(results, 3, "b" * 9, broken=7.0, testbed=testbed)
    return tonight


def same_build(results: Path) -> str:
    return of_releases(results, "1.0", "1.0")


def not_installed(results: Path) -> str:
    return of_releases(results, "1.0", "1.2")


def of_releases(results: Path, *releases: str) -> str:
    last = ""
    for number, release in enumerate(releases):
        builds = (a_build("tiny-1.0", release="1.0"), a_build("nightly", release=release))
        last = put(results, number, scenario=SCENARIO, builds=builds, broken=7.0 * number)
    return last


@pytest.mark.parametrize(
    ("build", "repo", "why"),
    [
        (elsewhere, "/srv/vllm", "it was measured on far-8c, and this is epyc-4c"),
        (same_build, "/srv/vllm", "both ends are nightly: nothing is between"),
        (not_installed, "", "tiny-1.2: expected both ends to be installed"),
        (
            lambda results: two_nights(results, broken=7.0),
            "",
            "expected a clone of vLLM as repo in [bisect] of the policy",
        ),
    ],
)
def test_what_cannot_be_searched_is_said_in_a_line_with_the_reason(
    results, tmp_path, monkeypatch, capsys, build, repo, why
) -> None:
    make_checkout(tmp_path / "home", SCENARIO)
    declare(tmp_path / "home", "1.2")
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(tmp_path / "home"))
    policy = policy_of(repo)
    held(results, policy, build(results))
    (said,) = (line for line in capsys.readouterr().out.splitlines() if "not searched" in line)
    assert said.startswith(f"bisect {SCENARIO}: not searched: ")
    assert why in said
    assert why in page(results, policy)
    assert the_topic(results, policy).searched == "", "what may be searched yet is no news"
