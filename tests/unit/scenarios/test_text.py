"""Prompts that must be remembered: what they ask is written in them, to the exact length."""

import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridwatch.scenarios.expansion import (
    QUESTION,
    SHORTEST_RECALL,
    Listing,
    expand,
    listing,
    question,
    random_text,
)
from hybridwatch.scenarios.pattern import Wave

PAIR = re.compile(r"^([A-Z][0-9])=([a-z]{4})$", re.MULTILINE)
ASKED = re.compile(r"\?([A-Z][0-9])=$")


def stream(seed: int = 1):
    return random.Random(seed).random


def wave(**changes: Any) -> Wave:
    content = {"requests": 6, "input_tokens": 80, "output_tokens": 4, "text": "recall"}
    return Wave.model_validate(content | changes)


def said(*waves: Wave, seed: int = 1) -> list[str]:
    """The prompts of all waves as a model reads them."""
    planned = expand(waves, seed)
    return [bytes(r.prompt).decode("ascii") for each in planned for r in each.requests]


def key_in(prompt: str) -> str:
    found = ASKED.search(prompt)
    assert found, prompt
    return found[1]


# Texts.


@given(st.integers(0, 200), st.integers(0, 1000))
def test_every_text_is_as_long_as_it_was_ordered(tokens, seed):
    about = listing(stream(seed), tokens)
    assert len(about.tokens) == tokens
    assert len(question(stream(seed), about, tokens)) == tokens
    assert len(question(stream(seed), Listing(), tokens)) == tokens
    assert len(random_text(stream(seed), tokens)) == tokens


@given(st.integers(0, 200), st.integers(0, 1000))
def test_a_listing_holds_as_many_pairs_as_fit_up_to_four_each_key_once(tokens, seed):
    about = listing(stream(seed), tokens)
    pairs = PAIR.findall(bytes(about.tokens).decode("ascii"))
    assert tuple(key for key, _ in pairs) == about.keys
    assert len(set(about.keys)) == len(about.keys) == min(4, tokens // 8)


@given(st.integers(QUESTION, 200), st.integers(0, 1000))
def test_a_question_is_about_a_key_of_the_listing(tokens, seed):
    draw = stream(seed)
    about = listing(draw, 40)
    text = bytes(question(draw, about, tokens)).decode("ascii")
    assert key_in(text) in about.keys
    assert text.count("?") == 1


def test_every_key_is_asked_for_sooner_or_later():
    draw = stream()
    about = listing(draw, 40)
    texts = [bytes(question(draw, about, QUESTION)).decode("ascii") for _ in range(100)]
    assert {key_in(text) for text in texts} == set(about.keys)


@pytest.mark.parametrize(
    ("about", "tokens"), [(Listing(), 30), (Listing(keys=("K4",)), QUESTION - 1)]
)
def test_a_question_that_cannot_be_asked_is_random_letters(about, tokens):
    assert question(stream(3), about, tokens) == random_text(stream(3), tokens)


def test_one_stream_gives_one_text():
    assert listing(stream(5), 60) == listing(stream(5), 60)
    assert listing(stream(5), 60) != listing(stream(6), 60)


# Waves.


def test_what_comes_of_a_seed_is_pinned():
    """A change here would silently turn every recall scenario into another one."""
    assert said(wave(requests=2, input_tokens=48)) == [
        "I7=ftop\nO0=kivz\nH8=itie\nT7=ktrb\nis old ston\n?H8=",
        "Q4=dnhu\nZ0=vuwy\nK4=ongo\nG6=iacf\nstone steps\n?K4=",
    ]


@given(st.integers(SHORTEST_RECALL, 300), st.integers(0, 1000))
def test_a_prompt_asks_for_what_it_says_itself(length, seed):
    for prompt in said(wave(input_tokens=length), seed=seed):
        assert len(prompt) == length
        keys = [key for key, _ in PAIR.findall(prompt)]
        assert len(keys) >= 2
        assert key_in(prompt) in keys


@pytest.mark.parametrize("rest", [QUESTION, QUESTION + 1, 30])
def test_a_prompt_asks_for_what_its_shared_prefix_says(rest):
    prompts = said(wave(requests=4, shared_prefix_tokens=48, prefixes=2, input_tokens=48 + rest))
    assert {len(prompt) for prompt in prompts} == {48 + rest}
    assert prompts[0][:48] == prompts[2][:48] != prompts[1][:48] == prompts[3][:48]
    for prompt in prompts:
        assert key_in(prompt) in [key for key, _ in PAIR.findall(prompt[:48])]
        assert not PAIR.search(prompt[48:])
    assert len(set(prompts)) == len(prompts)


def test_a_prefix_without_room_for_a_pair_is_followed_by_a_listing():
    for prompt in said(wave(shared_prefix_tokens=7, input_tokens=7 + SHORTEST_RECALL)):
        assert not PAIR.search(prompt[:7])
        assert key_in(prompt) in [key for key, _ in PAIR.findall(prompt[7:])]


@pytest.mark.parametrize(
    "lengths",
    [
        {"input_tokens": SHORTEST_RECALL - 1},
        {"input_tokens": 1},
        {"shared_prefix_tokens": 7, "input_tokens": 7 + SHORTEST_RECALL - 1},
    ],
)
def test_what_is_too_short_to_ask_ends_in_random_letters(lengths):
    prompts = said(wave(**lengths))
    assert {len(prompt) for prompt in prompts} == {lengths["input_tokens"]}
    assert not any(set("?=") & set(prompt) for prompt in prompts)
    if "shared_prefix_tokens" not in lengths:
        assert prompts == said(wave(**lengths, text="random"))


def test_a_question_without_room_behind_its_prefix_is_random_letters():
    for prompt in said(wave(shared_prefix_tokens=48, input_tokens=48 + QUESTION - 1)):
        assert PAIR.search(prompt[:48])
        assert not set("?=") & set(prompt[48:])


def test_random_waves_ask_nothing():
    assert not any(set("?=\n") & set(prompt) for prompt in said(wave(text="random")))


def test_the_same_seed_gives_the_same_texts_and_another_one_others():
    waves = (wave(), wave(shared_prefix_tokens=48), wave(input_tokens={"from": 20, "to": 90}))
    assert said(*waves, seed=3) == said(*waves, seed=3)
    assert not set(said(*waves, seed=3)) & set(said(*waves, seed=4))


def test_waves_share_a_prefix_and_differ_behind_it():
    one, two = (
        said(wave(requests=1, shared_prefix_tokens=48)),
        said(wave(requests=2, shared_prefix_tokens=48), wave(requests=1, shared_prefix_tokens=48)),
    )
    assert {prompt[:48] for prompt in one + two} == {one[0][:48]}
    assert two[0] == one[0]
    assert len(set(two)) == 3
