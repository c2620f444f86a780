"""Speculation on a hybrid target leaves greedy tokens as they are, whatever drafts and is cached.

`python -m hybridwatch_engine_lab.studies.lossless --requests 500` is the long form.
"""

import json
import os
import subprocess

import pytest

from hybridwatch.engines.builds import parse_label
from hybridwatch.system.home import home
from hybridwatch_lab.in_engine import variables
from tests.engine.conftest import BUILD

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("the plugin has changed, so engines with and without drafts are compared"),
    pytest.mark.timeout(600),
]

REQUESTS = 40
EAGLE = ("--method", "eagle", "--draft", "models/tiny-hybrid-eagle")
NGRAM = ("--method", "ngram")
CASES = {
    "none, ngram": ("--mode", "none", *NGRAM),
    "align, ngram": ("--mode", "align", *NGRAM),
    "align, eagle": ("--mode", "align", *EAGLE),
    "all, ngram": ("--mode", "all", *NGRAM),
    "all, eagle": ("--mode", "all", *EAGLE),
    "align, eagle, V2": ("--runner", "v2", "--mode", "align", *EAGLE),
}


@pytest.fixture(scope="module")
def compare(tmp_path_factory):
    """Compare an engine that speculates with the plain one, which is started once."""
    interpreter = str(parse_label(BUILD).spec.interpreter)
    study = (interpreter, "-m", "hybridwatch_engine_lab.studies.lossless", "models/tiny-hybrid")
    plain = tmp_path_factory.mktemp("plain") / "said"
    shared = ("--requests", str(REQUESTS), "--plain", str(plain))

    def run(*words):
        done = subprocess.run(
            [*study, *shared, *words],
            cwd=home(), env={**os.environ, **variables()},
            capture_output=True, text=True, timeout=500, check=False,
        )  # fmt: skip
        assert done.stdout, done.stderr[-3000:]
        return done.returncode, json.loads(done.stdout)

    return run


@pytest.mark.parametrize(
    "words",
    [
        # An engine each. In `align` mode test_draft_writes.py compares tokens, too.
        pytest.param(words, id=case, marks=() if case == "all, eagle" else pytest.mark.slow)
        for case, words in CASES.items()
    ],
)
def test_tokens_equal_those_without_speculation(compare, words):
    status, told = compare(*words)
    assert (status, told["requests"], told["equal"]) == (0, REQUESTS, REQUESTS)
    # Some accepted, some rejected.
    assert told["num_draft_tokens"] > told["num_accepted_tokens"] > 0
    assert told["states_compared"] > 0
    assert (told["states_off"], told["block_ends_off"]) == (0, 0)
    if "all" in words:
        assert told["crossed_rejections"] > 0
        assert told["blocks_completed"] > 0
    assert (told["cached_tokens"] > 0) == ("none" not in words)


def test_an_engine_without_a_fix_is_not_lossless(compare):
    """The planted defect: what the comparison is for."""
    status, told = compare(*CASES["all, eagle"], "--without", "conv-anchor")
    assert status == 1
    assert told["equal"] < REQUESTS
    assert told["states_off"] > 0
