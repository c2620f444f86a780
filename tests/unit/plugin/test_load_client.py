"""What the load client counts of the streams that vLLM's client is sent."""

import asyncio
import json
from types import SimpleNamespace

import pytest
from hybridwatch_engine import load_client
from hybridwatch_engine.load_client import Replayer, StreamKeeper, count_tokens

USAGE = 'data: {"choices": [], "usage": {"completion_tokens": 99}}'
END = "data: [DONE]"


def chunk(text, *ids, index=0):
    choice = {"index": index, "text": text, "token_ids": list(ids)}
    return f"data: {json.dumps({'choices': [choice]})}"


@pytest.mark.parametrize(
    ("messages", "tokens"),
    [
        ([chunk("a", 1), chunk("b", 2)], 2),
        ([chunk("ab", 1, 2, 3), chunk("c", 4)], 4),  # accepted drafts
        ([chunk("", 226), chunk("", 130), chunk("€", 172)], 3),  # bytes of one character
        ([chunk("a", 1, index=0), chunk("b", 2, index=1)], 2),
        ([": a ping", chunk("a", 1), ": another"], 1),
        (['data: {"choices": [{"index": 0, "text": "abc", "token_ids": null}]}'], 0),
        (['data: {"choices": [{"index": 0, "text": "abc"}]}'], 0),
        (['data: {"error": {"message": "it died"}}'], 0),
        ([], 0),
    ],
)
def test_tokens_are_counted_and_no_number_is_believed(messages, tokens):
    assert count_tokens([*messages, USAGE, END]) == tokens


class Handler:
    """As vLLM's: gives the messages that a piece of the stream completes."""

    def add_chunk(self, chunk_bytes):
        return [message for message in chunk_bytes.decode().split("\n\n") if message]


def test_each_request_has_its_count_until_it_is_forgotten():
    keeper = StreamKeeper()
    made = keeper.keeping(Handler)
    first, second = made(), made()
    for piece in (chunk("a", 1), f"{chunk('b', 2)}\n\n{USAGE}"):
        assert first.add_chunk(piece.encode()) == piece.split("\n\n"), "vLLM's client sees it all"
    second.add_chunk(chunk("abc", 1, 2, 3).encode())
    assert keeper.counts() == [2, 3]
    keeper.forget()
    assert keeper.counts() == []


class Clock:
    """Seconds that pass only while somebody sleeps, each sleep ``late`` too long."""

    def __init__(self, late=0.0):
        self.now, self.late = 100.0, late

    def perf_counter(self):
        return self.now

    async def sleep(self, seconds):
        if seconds:
            self.now += seconds + self.late


def replay(monkeypatch, tmp_path, rows, late=0.0):
    """Send the requests of a file by a clock of our own; gives when each was sent, and lateness."""
    clock, replayer, came = Clock(late), Replayer(), {}
    monkeypatch.setattr(load_client, "time", clock)
    monkeypatch.setattr(asyncio, "sleep", clock.sleep)
    file = tmp_path / "r.requests"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    samples = replayer.reading(SimpleNamespace)(None)(
        SimpleNamespace(dataset_name="custom", dataset_path=str(file)), "a tokenizer"
    )

    async def send(request, session):
        assert session == "a session"
        came[request.prompt[0]] = clock.now
        clock.now += 3.0  # until it is answered
        return request.prompt

    async def send_all():
        waiting = replayer.waiting(send)
        return await asyncio.gather(*(waiting(one, session="a session") for one in samples))

    answers = asyncio.run(send_all())
    assert answers == [row["prompt"] for row in rows], "each gets its own answer"
    return came, replayer.take_lateness(), samples


def row(token, delay_s, after=None):
    return {"prompt": [token, 8], "max_tokens": 5, "delay_s": delay_s, "after": after}


def soon(seconds):
    """A moment, but for the lead that all requests have."""
    return pytest.approx(seconds, abs=0.001)


def test_requests_are_sent_when_they_are_due(monkeypatch, tmp_path):
    came, late, samples = replay(monkeypatch, tmp_path, [row(1, 0.0), row(2, 7.0)])
    assert came == {1: soon(100.0), 2: soon(107.0)}
    assert late == [0.0, 0.0]
    assert [(one.prompt_len, one.expected_output_len) for one in samples] == [(2, 5), (2, 5)]


def test_a_turn_waits_for_the_answer_before_it(monkeypatch, tmp_path):
    came, late, _ = replay(monkeypatch, tmp_path, [row(1, 0.0), row(2, 0.5, after=0)])
    assert came == {1: soon(100.0), 2: soon(103.5)}
    assert late == [0.0, 0.0]


def test_what_is_sent_late_is_said(monkeypatch, tmp_path):
    _, late, _ = replay(monkeypatch, tmp_path, [row(1, 0.0), row(2, 7.0)], late=0.25)
    assert late == [0.25, 0.25]


def test_a_load_of_another_kind_is_left_alone():
    replayer = Replayer()
    read = replayer.reading(SimpleNamespace)(lambda args, *_: [args.dataset_name])
    assert read(SimpleNamespace(dataset_name="random"), "a tokenizer") == ["random"]

    async def send(request, pbar):
        return request, pbar

    assert asyncio.run(replayer.waiting(send)("a request", pbar=1)) == ("a request", 1)
    assert replayer.take_lateness() == []
