"""What the load client counts of the streams that vLLM's client is sent."""

import json

import pytest
from hybridwatch_engine.load_client import StreamKeeper, count_tokens

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
