"""What a stretch of steps counts, on an engine that gives tokens as it is told."""

import sys
from types import SimpleNamespace

import pytest
from hybridwatch_engine_lab.studies.stepping import stretch


class Engine:
    """Gives each request so many tokens in each step, whatever it is asked."""

    def __init__(self, *steps):
        self.steps = list(steps)
        self.given = 0

    def add_request(self, *_):
        """Take it."""

    def has_unfinished_requests(self):
        return bool(self.steps)

    def step(self):
        tokens = self.steps.pop(0)
        self.given += tokens
        if not tokens:
            return []
        return [
            SimpleNamespace(request_id="a", outputs=[SimpleNamespace(token_ids=[1] * self.given)])
        ]


@pytest.mark.parametrize(
    ("given", "steps", "tokens"),
    [
        ((1, 1, 1, 1), 2, 2),
        ((0, 1, 1, 1, 1), 2, 2),  # it schedules ahead: the first step gives nothing yet
        ((0, 0, 2, 2, 2, 1), 2, 4),
    ],
)
def test_the_prompts_step_and_the_last_are_left_out(monkeypatch, given, steps, tokens):
    names = ("SamplingParams", "TokensPrompt")
    pretended = SimpleNamespace(**dict.fromkeys(names, lambda **asked: asked))
    monkeypatch.setitem(sys.modules, "vllm", pretended)
    found = stretch(Engine(*given), "x", rows=1)
    assert (len(found.seconds), found.tokens) == (steps, tokens)
