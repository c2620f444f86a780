"""Answers that come chunk by chunk say what they say in one piece, told by a server that lies."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from hybridwatch.errors import EngineError
from hybridwatch.measurement.completions import (
    Reply,
    count_wrong_streams,
    join_stream,
    with_streams,
)
from hybridwatch.measurement.waves import drive_replies, drive_whole
from hybridwatch.records.run import CloseCall, Completion
from hybridwatch.scenarios.expansion import PlannedRequest, PlannedWave
from hybridwatch.scenarios.sampling import SamplingParams, StructuredOutputs
from tests.unit.measurement.fake_engines import JsonHandler, behind_server

TEXTS = {1: "a", 2: "", 3: "", 4: "€", 5: "\u2028", 6: "b"}
"""Of the tokens: 2 and 3 are the first bytes of a character that 4 completes."""


@dataclass
class Defect:
    """What the server does wrong; without a name nothing.

    Attributes:
        at_once: Tokens of a chunk, as of accepted drafts.
    """

    name: str = ""
    at_once: int = 1


def choice_of(tokens: list[int], index: int) -> dict[str, Any]:
    logprobs = {
        "token_logprobs": [-0.5] * len(tokens),
        "top_logprobs": [{f"token_id:{one}": -0.5, "token_id:9": -0.502} for one in tokens],
    }
    text = "".join(TEXTS[one] for one in tokens)
    return {"index": index, "text": text, "token_ids": tokens, "logprobs": logprobs}


def chunks_of(answers: list[list[int]], defect: Defect) -> Iterator[dict[str, Any]]:
    """The chunks of all answers in turn, as those of several answers come."""
    length, size = len(answers[0]), defect.at_once
    for begun in range(0, length, size):
        for index, tokens in enumerate(answers):
            choice = choice_of(tokens[begun : begun + size], index)
            if begun + size >= length and defect.name == "chunk":
                continue
            if begun + size >= length and defect.name == "character":
                choice["text"] = choice["text"][:-1]
            if defect.name == "numbers":
                choice["logprobs"]["token_logprobs"][0] = None
            yield {"choices": [choice]}
    if defect.name == "error":
        yield {"error": {"message": "the engine died", "code": 500}}


def handler_of(defect: Defect) -> type[BaseHTTPRequestHandler]:
    class Handler(JsonHandler):
        def do_POST(self) -> None:
            body = self.question()
            tokens = [one for one in body["prompt"] if one in TEXTS][: body["max_tokens"]]
            answers = [tokens] * body.get("n", 1)
            if not body.get("stream"):
                self.say(200, {"choices": [choice_of(one, at) for at, one in enumerate(answers)]})
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.end_headers()
            for chunk in chunks_of(answers, defect):
                text = json.dumps(chunk, ensure_ascii=False)
                self.wfile.write(f": a ping\n\ndata: {text}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")

    return Handler


class Control:
    """Is asked for nothing but an end."""

    def drain(self) -> None:
        """Nothing is left."""

    def await_transfers(self) -> None:
        """No connector."""


@pytest.fixture
def defect():
    return Defect()


@pytest.fixture
def engine(defect):
    with behind_server(handler_of(defect), Control()) as live:
        yield live


WAVES = [
    PlannedWave(
        (
            PlannedRequest((1, 2, 3, 4, 5, 6), 6),
            PlannedRequest((6, 2, 3, 4, 5, 1), 6),
            PlannedRequest((1, 1, 6), 3, n=2),
        ),
        "queue",
        max_concurrency=2,
    ),
    PlannedWave((PlannedRequest((2, 3, 4), 3),), "queue", max_concurrency=1),
]


@pytest.mark.parametrize("at_once", [1, 2, 6])
def test_a_streamed_answer_is_the_one_in_one_piece(engine, defect, at_once):
    defect.at_once = at_once
    whole = drive_replies(engine, WAVES)
    for number in (0, 1):
        told = drive_replies(engine, with_streams(WAVES, number))
        assert [one.streamed for one in told] == [place % 2 == number for place in range(4)]
        assert [one._replace(streamed=False) for one in told] == whole
        assert count_wrong_streams(told, whole) == 0
    assert whole[0].text == "a€\u2028b"
    assert whole[2].completion.tokens == (1, 1, 6, 1, 1, 6)
    assert whole[3].completion.close_calls == tuple(CloseCall(at, 9, 0.002) for at in range(3))


def test_a_stream_without_its_last_character_is_counted_and_nothing_else_shows_it(engine, defect):
    whole = drive_replies(engine, WAVES)
    defect.name = "character"
    told = drive_replies(engine, with_streams(WAVES, 0))
    assert [one.completion for one in told] == [one.completion for one in whole]
    assert count_wrong_streams(told, whole) == 2
    assert drive_whole(engine, WAVES) == tuple(one.completion for one in whole)


def test_a_stream_without_its_last_chunk_is_no_answer(engine, defect):
    defect.name = "chunk"
    with pytest.raises(EngineError, match="expected an answer of 6 token ids in a stream, found 5"):
        drive_replies(engine, with_streams(WAVES, 0))
    with pytest.raises(EngineError, match="2 answers of 3 token ids in a stream, found 2, 2"):
        drive_replies(engine, with_streams([PlannedWave(WAVES[0].requests[2:], "queue", 1)], 0))


def test_a_stream_that_ends_with_an_error_says_it(engine, defect):
    defect.name = "error"
    with pytest.raises(EngineError, match=r"a stream ended with an error: .*the engine died"):
        drive_replies(engine, with_streams(WAVES, 0))
    grammar = StructuredOutputs(regex=".*")
    asked = SamplingParams(ignore_eos=False, structured_outputs=grammar)
    given_up = PlannedRequest((1, 2), 2, sampling_params=asked, streamed=True)
    assert drive_whole(engine, [PlannedWave((given_up,), "queue", 1)])[0].tokens == ()


def test_streamed_logarithms_that_are_no_numbers_are_an_answer_without_tokens(engine, defect):
    """In one piece the server refuses them; in a stream JSON has null in their place."""
    whole = drive_replies(engine, WAVES)
    defect.name = "numbers"
    told = drive_replies(engine, with_streams(WAVES, 0))
    assert [bool(one.completion.tokens) for one in told] == [False, True, False, True]
    assert count_wrong_streams(told, whole) is None


def test_a_client_that_goes_away_is_not_streamed_to():
    gone = PlannedWave((PlannedRequest((5,), 2, abort_at_step=1), PlannedRequest((5,), 2)), "steps")
    for number in (0, 1):
        assert not with_streams([gone], number)[0].requests[0].streamed


def reply(*tokens: int, text: str = "a", streamed: bool = False) -> Reply:
    return Reply(Completion("p", tokens), text, streamed)


def test_other_tokens_are_no_wrong_stream():
    whole = [reply(1), reply(2)]
    assert count_wrong_streams([reply(3, text="b", streamed=True), reply(2)], whole) is None
    assert count_wrong_streams([reply(1, streamed=True), reply(2, text="b")], whole) == 0
    assert count_wrong_streams([reply(1, text="b", streamed=True), reply(2)], whole) == 1


def test_a_line_of_a_stream_ends_with_a_line_feed_alone():
    chunk = {"choices": [{"index": 0, "text": "\u2028\u0085", "token_ids": [1]}]}
    text = f"data: {json.dumps(chunk, ensure_ascii=False)}\r\n\r\ndata: [DONE]\r\n\r\n"
    assert join_stream(text)["choices"] == chunk["choices"]
