"""What a night searches by itself: a confirmed alert, once, in bounded minutes; who reads it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hybridwatch.analysis.change_review import ChangeReview
from hybridwatch.analysis.policy import AlertBisect, Policy
from hybridwatch.cli import alert_bisects
from hybridwatch.cli.alert_bisects import bisect_alerts
from hybridwatch.database.queries import open_index
from hybridwatch.history.checkout import Checkout
from hybridwatch.history.newest_runs import findings_for
from hybridwatch.integrations.notify.gather import TopicPlace, gather_topics
from hybridwatch.integrations.notify.news import News, find_news
from hybridwatch.orchestration.bisect.alert_answers import ANSWERS, read_answers
from hybridwatch.records.store import list_records, read_run, write_run
from hybridwatch.reports.pull_request import render
from tests.builders import TESTBED, a_build
from tests.command_line import run_verb
from tests.dashboard.parity import words_of
from tests.unit.integrations.notify.pretended import a_message, told
from tests.unit.orchestration.bisect.test_command import (
    SCENARIO,
    a_history,
    declare,
    engines,
    home,
)
from tests.unit.pages.suite_stores import NOW, WRONG, alerts, put, view

__all__ = ["engines", "home"]
HOURS = 3600.0


@pytest.fixture
def results(tmp_path, home) -> Path:
    folder: Path = tmp_path / "results"
    return folder


@pytest.fixture
def clone(tmp_path) -> Path:
    """Four commits, of which the third breaks the contract."""
    found: Path = a_history(tmp_path / "clone", *(f"rows = {rows}\n" for rows in (1, 2, 3, 4)))
    return found


def commits(clone: Path) -> list[str]:
    words = (clone / ".git" / "logs" / "HEAD").read_text().splitlines()
    return [line.split()[1] for line in words]


def a_night(results: Path, number: int, commit: str, **changes) -> str:
    """Measure the nightly of a commit next to the release."""
    builds = (
        a_build("tiny-1.0", release="1.0"),
        a_build("nightly", release=f"1.1.dev{number}+g{commit[:9]}"),
    )
    return put(results, number, **{"scenario": SCENARIO, "builds": builds, **changes})


def policy_of(clone: Path | str, minutes: float = 60) -> Policy:
    return Policy(bisect=AlertBisect(minutes, str(clone), "tiny-1.0"))


def held(results: Path, policy: Policy, *runs: str, seconds=HOURS, **how) -> ChangeReview:
    """What the findings of a night with these runs are once it has searched."""
    found = [findings_for((run,), results, policy).reports[0] for run in runs]
    findings = ChangeReview(tuple(found), policy=policy)
    return bisect_alerts(findings, seconds, print, results, **how)


@pytest.fixture
def bad(results, clone) -> str:
    """A good night, then one in which the contract is broken."""
    _, first, *_, last = commits(clone)
    a_night(results, 1, first)
    return a_night(results, 2, last, broken=7.0)


def page(results: Path, policy: Policy) -> str:
    checkout = Checkout(policy=policy)
    (alert,) = alerts(results, checkout)
    return "\n".join(words_of(view(results, "alerts", checkout, alert=alert.subject.key)))


def the_topic(results: Path, policy: Policy):
    place = TopicPlace(results, open_index(results), Checkout(policy=policy))
    (topic,) = (one for one in gather_topics(place, NOW) if not one.is_gap)
    return topic


def test_page_message_and_comment_name_the_commit(results, clone, engines, bad, capsys) -> None:
    policy = policy_of(clone)
    findings = held(results, policy, bad)
    line = findings.searched[bad]
    sha = commits(clone)[3]
    assert f"changed with {sha[:10]} Change 3 (#103); measured again, confirmed: 0 -> 7" in line
    assert f"bisect {SCENARIO}: {line}" in capsys.readouterr().out
    assert line in page(results, policy)
    topic = the_topic(results, policy)
    assert ("Bisected", line) in list(a_message(content=topic.content()).facts())
    assert "**Bisected:** " in render(findings).text
    assert sha[:10] in render(findings).text
    assert read_answers(results, [bad]) == {bad: line}
    (kept,) = (results / ANSWERS).glob("*.json")
    assert json.loads(kept.read_text())["answer"]["culprit"]["pull_request"] == 103
    said = run_verb("suspects", kept, "--repo", "o/n", "--dry-run")
    assert sha[:10] in said.output


def test_search_opens_no_alert_of_its_own(results, clone, engines, bad) -> None:
    held(results, policy_of(clone), bad)
    assert len(alerts(results)) == 1
    assert open_index(results).counts["runs"] == 2


def test_nothing_is_searched_by_default(results, clone, engines, bad) -> None:
    findings = held(results, Policy(), bad)
    assert findings.searched == {}
    assert engines.started == []
    assert "Bisected" not in page(results, Policy()) + render(findings).text
    assert the_topic(results, Policy()).searched == ""


def test_second_night_does_not_search_again_and_says_it_again(results, clone, engines, bad) -> None:
    policy = policy_of(clone)
    line = held(results, policy, bad).searched[bad]
    first = len(engines.started)
    again = a_night(results, 3, commits(clone)[-1], broken=7.0)
    assert held(results, policy, again).searched == {again: line}
    assert len(engines.started) == first
    (kept,) = (results / ANSWERS).glob("*.json")
    kept.unlink()  # were nothing kept, it would be measured again
    held(results, policy, again)
    assert len(engines.started) > first


def test_answer_is_news_once_to_who_has_heard_of_the_alert(results, clone, engines, bad) -> None:
    policy = policy_of(clone)
    before = the_topic(results, policy)
    heard = replace(told(), seen=before.seen, content=before.content())
    assert find_news(before, heard) is None
    held(results, policy, bad)
    topic = the_topic(results, policy)
    assert find_news(topic, heard) is News.BISECTED
    assert find_news(topic, replace(heard, content=topic.content())) is None
    message = a_message(News.BISECTED, content=topic.content())
    assert message.headline.startswith("Bisected: ")


def test_what_chance_may_explain_is_not_searched(results, clone, engines) -> None:
    _, first, *_, last = commits(clone)
    a_night(results, 1, first)
    once = a_night(results, 2, last, slower=1.5)
    (alert,) = alerts(results)
    assert not alert.timeline.is_confirmed
    assert held(results, policy_of(clone), once).searched == {}
    a_night(results, 3, last, slower=1.5)
    (alert,) = alerts(results)
    assert alert.timeline.is_confirmed


class Searches:
    """Stands for ``search``: notes what it is given, and takes so many minutes of a clock."""

    def __init__(self, minutes: float) -> None:
        self.minutes, self.now = minutes, 0.0
        self.given: list[float] = []

    def clock(self) -> float:
        return self.now

    def search(self, scenario, options, *_, **__):
        self.given.append(options.max_minutes)
        self.now += 60 * self.minutes
        return {
            "schema_version": 1,
            "scenario": scenario,
            "confirmed": False,
            "answer": None,
            "confirmation": None,
            "repeat": None,
        }


@pytest.mark.parametrize(
    ("takes", "seconds", "given"),
    [
        (4.0, HOURS, [10.0, 6.0]),
        (10.0, HOURS, [10.0]),
        (4.0, 300.0, [5.0, 1.0]),
        (4.0, -1.0, []),
    ],
)
def test_minutes_are_for_all_alerts_of_a_night(
    results, clone, monkeypatch, takes, seconds, given
) -> None:
    _, first, *_, last = commits(clone)
    a_night(results, 1, first)
    both = a_night(results, 2, last, broken=7.0, answers=WRONG)
    made = Searches(takes)
    monkeypatch.setattr(alert_bisects, "search", made.search)
    policy = policy_of(clone, minutes=10)
    found = held(results, policy, both, seconds=seconds, clock=made.clock)
    assert made.given == given
    kept = [json.loads(path.read_text()) for path in (results / ANSWERS).glob("*.json")]
    late = [one for one in kept if "the time for searches was up" in one.get("why_not", "")]
    assert (len(kept), len(late)) == (2, 2 - len(given))
    assert list(found.searched) == [both]
    held(results, policy, both, clock=made.clock)  # the next night goes on with the rest
    assert len(made.given) == 2


def test_one_cause_in_two_scenarios_is_searched_once(results, clone, monkeypatch) -> None:
    _, first, *_, last = commits(clone)
    a_night(results, 1, first)
    bad = a_night(results, 2, last, broken=7.0)
    (record,) = (path for path in list_records(results) if bad in path.name)
    run = read_run(record)
    other = replace(run, id="0000abcd", scenario=replace(run.scenario, id="smoke/other"))
    write_run(results, other)
    assert len(alerts(results)) == 2
    made = Searches(1)
    monkeypatch.setattr(alert_bisects, "search", made.search)
    found = held(results, policy_of(clone), bad, other.id, clock=made.clock)
    assert len(made.given) == 1
    assert set(found.searched) == {bad, other.id}
    assert len(set(found.searched.values())) == 1
    assert render(found).text.count("**Bisected") == 1


def elsewhere(results: Path, clone: Path, **changes) -> str:
    _, first, *_, last = commits(clone)
    tonight = a_night(results, 1, first)
    testbed = replace(TESTBED, id="far-8c")
    a_night(results, 2, first, testbed=testbed)
    a_night(results, 3, last, broken=7.0, testbed=testbed)
    return tonight


def same_build(results: Path, clone: Path) -> str:
    builds = (a_build("tiny-1.0", release="1.0"), a_build("nightly", release="1.0"))
    put(results, 1, scenario=SCENARIO, builds=builds)
    return put(results, 2, scenario=SCENARIO, builds=builds, broken=7.0)


def not_installed(results: Path, clone: Path) -> str:
    for number, release, broken in ((1, "1.0", 0.0), (2, "1.2", 7.0)):
        builds = (a_build("tiny-1.0", release="1.0"), a_build("nightly", release=release))
        last = put(results, number, scenario=SCENARIO, builds=builds, broken=broken)
    return last


def without_a_clone(results: Path, clone: Path) -> str:
    _, first, *_, last = commits(clone)
    a_night(results, 1, first)
    return a_night(results, 2, last, broken=7.0)


@pytest.mark.parametrize(
    ("build", "repo", "why"),
    [
        (elsewhere, True, "it was measured on far-8c, and this is epyc-4c"),
        (same_build, True, "both ends are nightly: nothing is between"),
        (not_installed, False, "tiny-1.2: expected both ends to be installed"),
        (without_a_clone, False, "expected a clone of vLLM as repo in [bisect] of the policy"),
    ],
)
def test_what_cannot_be_searched_is_said_in_a_line_with_the_reason(
    results, home, clone, engines, capsys, build, repo, why
) -> None:
    declare(home, "1.2")
    policy = policy_of(clone if repo else "")
    tonight = build(results, clone)
    held(results, policy, tonight)
    (said,) = (line for line in capsys.readouterr().out.splitlines() if "not searched" in line)
    assert said.startswith(f"bisect {SCENARIO}: not searched: ")
    assert why in said
    assert engines.started == []
    assert why in page(results, policy)
    assert the_topic(results, policy).searched == "", "what may be searched yet is no news"
