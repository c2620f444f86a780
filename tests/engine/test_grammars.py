"""Grammars read by xgrammar in an engine's environment; no engine is started."""

import json
import subprocess

import pytest

from hybridwatch.system.home import home

pytestmark = pytest.mark.engine

END = 258
READING = """
import json, sys, torch
from hybridwatch_engine.grammars import GrammarReader
reader = GrammarReader(sys.argv[1], 259)
answers = json.load(sys.stdin)
masked = reader.mask(torch.zeros(3, 259), [97, 99, 99], {"regex": "a[bc]d"})
print(json.dumps({
    "breaks": [reader.find_break(*one) for one in answers],
    "open": [row.isfinite().nonzero().flatten().tolist() for row in masked],
}))
"""
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
LONG = 20
CASES = [
    ({"regex": "(ab|cd)+x"}, "abcdx", True, LONG, None),
    ({"regex": "(ab|cd)+x"}, "abc", False, 3, None),
    ({"regex": "(ab|cd)+x"}, "abc", False, LONG, 3),
    ({"regex": "(ab|cd)+x"}, "abdx", True, LONG, 2),
    ({"regex": "(ab|cd)+x"}, "ab", True, LONG, 2),
    ({"regex": "(ab|cd)+x"}, "abxx", True, LONG, 3),
    ({"choice": ["yes", 'a "no"']}, 'a "no"', True, LONG, None),
    ({"choice": ["yes", 'a "no"']}, "yeah", False, 4, 2),
    ({"json": SCHEMA}, '{"a": 12}', True, LONG, None),
    ({"json": SCHEMA}, '{"a": 12', False, 8, None),
    ({"json": SCHEMA}, '{"a": "', False, 7, 6),
]
"""Grammar, text, whether the end of text follows, where it is cut, and what is found."""


@pytest.fixture(scope="module")
def told(sides):
    answers = [
        (outputs, [*text.encode(), *([END] if ended else [])], length)
        for outputs, text, ended, length, _ in CASES
    ]
    words = ("-P", "-c", READING, str(home() / "models" / "tiny-hybrid"))
    done = subprocess.run(
        [str(sides[0].spec.interpreter), *words],
        input=json.dumps(answers), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_answers_that_leave_their_grammars_are_found_where_they_do(told):
    assert told["breaks"] == [found for *_, found in CASES]


def test_what_a_grammar_refuses_is_masked_up_to_the_token_that_breaks_it(told):
    assert told["open"] == [[ord("a")], [ord("b"), ord("c")], [ord("d")]]
