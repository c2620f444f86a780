"""What is news to a channel, and what is not."""

from dataclasses import replace

import pytest

from hybridwatch.analysis.alerts import Since, build_alerts, since
from hybridwatch.analysis.policy import Action, Policy, Rule
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.integrations.notify.news import News, TopicStatus, find_news
from tests.unit.analysis.alerts.builders import QUESTION, nights, noon
from tests.unit.integrations.notify.pretended import a_topic, told

OPEN, QUIET, CLOSED, OVER, ONCE = TopicStatus
BAD, GOOD, OPEN_QUESTION = Verdict.REGRESSION, Verdict.EQUIVALENT, Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("before", "now", "news"),
    [
        (None, OPEN, News.OPENED),
        (None, QUIET, None),
        (None, CLOSED, None),
        (None, OVER, None),
        (OPEN, OPEN, None),
        (OPEN, QUIET, None),
        (OPEN, CLOSED, News.CLOSED),
        (OPEN, OVER, News.RECOVERED),
        (QUIET, OPEN, News.AGAIN),
        (QUIET, QUIET, None),
        (QUIET, CLOSED, News.CLOSED),
        (QUIET, OVER, News.RECOVERED),
        (CLOSED, OPEN, News.BACK),
        (CLOSED, QUIET, None),
        (CLOSED, CLOSED, None),
        (CLOSED, OVER, None),
        (OVER, OPEN, News.BACK),
        (OVER, QUIET, None),
        (OVER, CLOSED, None),
        (OVER, OVER, None),
        (None, ONCE, None),
        (OPEN, ONCE, News.NOT_REPEATED),
        (QUIET, ONCE, News.NOT_REPEATED),
        (CLOSED, ONCE, None),
        (ONCE, OPEN, News.BACK),
    ],
)
def test_news_by_what_was_heard_and_what_is(before, now, news) -> None:
    assert find_news(a_topic(now), None if before is None else told(before)) is news


@pytest.mark.parametrize(
    ("moved", "news"), [(Since.WORSE, News.WORSE), (Since.BACK, News.BACK), (Since.NOTHING, None)]
)
def test_what_stays_open_is_news_when_it_moves(moved, news) -> None:
    assert find_news(a_topic(since=lambda _: moved), told()) is news
    again = news or News.AGAIN
    assert find_news(a_topic(since=lambda _: moved), told(QUIET)) is again


def judged(*effects: float | None):
    """A night for each: the effect of a regression, or none for a good one."""
    return [
        one
        for number, effect in enumerate(effects)
        for one in nights(*[GOOD if effect is None else BAD] * (number + 1), effect=effect)[-1:]
    ]


@pytest.mark.parametrize(
    ("effects", "moved"),
    [
        ((0.1, 0.1), Since.NOTHING),
        ((0.1, 0.19), Since.NOTHING),
        ((0.1, 0.21), Since.WORSE),
        ((0.2, 0.1), Since.NOTHING),
        ((0.1, None, 0.1), Since.BACK),
        ((0.1, 0.1, None, 0.5), Since.BACK),
    ],
)
def test_an_alert_moves_when_it_grows_much_or_comes_back(effects, moved) -> None:
    (before,) = build_alerts(judged(effects[0]), {}, noon(0))
    (after,) = build_alerts(judged(*effects), {}, noon(len(effects)))
    assert since(after, before.seen) is moved


def test_an_alert_moves_when_another_metric_blocks() -> None:
    tpot = replace(QUESTION, metric="tpot")
    first = nights(BAD)
    second = [*nights(BAD, BAD), *nights(BAD, BAD, about=tpot)[1:]]
    (before,) = build_alerts(first, {}, noon(0))
    (after,) = build_alerts(second, {}, noon(1))
    assert since(after, before.seen) is Since.WORSE
    warned = Policy((Rule("tpot", action=Action.WARN),))
    (mild,) = build_alerts(second, {}, noon(1), warned)
    assert since(mild, before.seen) is Since.NOTHING, "what only warns beside it is no news"


def test_an_alert_moves_when_it_blocks_and_had_only_warned() -> None:
    doubted = [replace(one, sure=False) for one in judged(0.1)]
    (before,) = build_alerts(doubted, {}, noon(0))
    (after,) = build_alerts([*doubted, *judged(0.1, 0.1)[1:]], {}, noon(1))
    assert (before.rank, after.rank) == (Action.WARN, Action.BLOCK)
    assert since(after, before.seen) is Since.WORSE
