"""What may be said about an alert."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from hybridwatch.analysis.alert_decisions import (
    LONGEST_MUTE,
    LONGEST_TEXT,
    TriageAction,
    checked_name,
)
from hybridwatch.errors import TriageError
from tests.unit.analysis.alerts.builders import (
    accept,
    acknowledge,
    assign,
    duplicate,
    invalid,
    link,
    mute,
    note,
    reopen,
    unmute,
)

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)

HOSTILE = (
    "<script>alert(1)</script>",
    "'); DROP TABLE triage_act; --",
    "[click](javascript:alert(1)) @everyone #1",
    "{{ 7 * 7 }} %s %(who)s :who ${HOME}",
    "two\nlines\tand a tab",
    "\u0639\u0631\u0628\u064a, \u4e2d\u6587, \U0001f469\u200d\U0001f4bb, e\u0301",
    "  blanks around  ",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_are_taken_as_they_were_written(text) -> None:
    for act in (acknowledge(text), note(text), unmute(text), reopen(text)):
        assert act.text == text


@pytest.mark.parametrize("say", [acknowledge, note, accept, invalid])
@pytest.mark.parametrize("empty", ["", " ", "\n\t", "\u00a0"])
def test_a_reason_and_a_note_need_words(say, empty) -> None:
    with pytest.raises(TriageError, match="expected some words, found none"):
        say(empty)


@pytest.mark.parametrize("say", [unmute, reopen])
def test_other_acts_need_none(say) -> None:
    assert say().text == ""


@pytest.mark.parametrize("say", [acknowledge, note, unmute, reopen, assign])
def test_characters_that_steer_a_display_are_refused_with_their_place(say) -> None:
    for mark in "\x00\x1b\r\x7f\x85\u202e\u2066\ud800\u2028":
        with pytest.raises(TriageError, match=rf"U\+{ord(mark):04X} at position 3$"):
            say(f"ab{mark}cd")


def test_a_text_has_an_end() -> None:
    assert note("x" * LONGEST_TEXT).text
    with pytest.raises(TriageError, match="at most 4000 characters, found 4001"):
        note("x" * (LONGEST_TEXT + 1))


def test_a_name_is_one_line() -> None:
    assert checked_name("who", "Ann O'Neil <ann@example.org>") == "Ann O'Neil <ann@example.org>"
    for wrong in ("", "  ", "Ann\nBob", "x" * 101):
        with pytest.raises(TriageError, match=r"^who: "):
            checked_name("who", wrong)


def test_an_alert_can_be_given_to_nobody() -> None:
    assert assign("").action is TriageAction.ASSIGN


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/vllm-project/vllm/issues/41873",
        "https://issues.example.org:8443/browse/A-1?x=%20&y[]=1#note_2",
        "https://[2001:db8::1]/1",
    ],
)
def test_an_issue_is_linked(url) -> None:
    assert link(url).text == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://github.com/a/b/issues/1",
        "javascript:alert(1)",
        "data:text/html,x",
        "//github.com/a",
        "https:///issues/1",
        "https://",
        "https:github.com",
        "https://:443/x",
        "https://user:secret@example.org/1",
        "https://github.com@evil.example/1",
        "https://example.org:port/1",
        "https://[::1/1",
        "https://example.org/a b",
        "https://example.org/1\n",
        'https://example.org/"onmouseover="x',
        "https://example.org/<b>",
        "https://example.org\\@evil.example/",
        "https://ex\u0430mple.org/1",
        f"https://example.org/{'x' * 2000}",
    ],
)
def test_what_is_no_issue_is_refused(url) -> None:
    with pytest.raises(TriageError, match=r"^issue: expected"):
        link(url)


def test_a_mute_ends() -> None:
    evening = datetime(2026, 11, 30, 18, 0, tzinfo=timezone(timedelta(hours=1)))
    assert mute(evening, NOW).until == datetime(2026, 11, 30, 17, 0, tzinfo=UTC)
    assert mute(NOW + LONGEST_MUTE, NOW, "until the release").text == "until the release"


@pytest.mark.parametrize(
    "until",
    [NOW, NOW - timedelta(days=1), NOW + LONGEST_MUTE + timedelta(seconds=1)],
)
def test_a_mute_that_does_not_end_in_time_is_refused(until) -> None:
    with pytest.raises(TriageError, match=r"^mute: expected an end within the next 366 days"):
        mute(until, NOW)


def test_a_mute_needs_to_know_where_on_earth() -> None:
    with pytest.raises(TriageError, match="with a time zone, found 2026-12-01T00:00:00"):
        mute(datetime(2026, 12, 1), NOW)  # noqa: DTZ001 (what is refused)


KEY = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    "of",
    [
        KEY,
        f" {KEY}\n",
        f"http://127.0.0.1:8501/alerts?alert={KEY}",
        f"https://watch.example.org/alerts?status=open&alert={KEY}&page=2",
    ],
)
def test_a_duplicate_names_the_other_alert_by_key_or_address(of) -> None:
    assert duplicate(of).text == KEY


def test_a_duplicate_may_name_an_issue() -> None:
    issue = "https://github.com/vllm-project/vllm/issues/1"
    assert duplicate(issue).text == issue


@pytest.mark.parametrize("of", ["", "the other one", "javascript:boom()", KEY[:-1]])
def test_a_duplicate_of_nothing_is_refused(of) -> None:
    with pytest.raises(TriageError, match=r"^duplicate of: expected .* found"):
        duplicate(of)
