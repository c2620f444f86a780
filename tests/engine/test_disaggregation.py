"""A real prefill and a real decode engine behind one address: same tokens, no way round."""

import random
import re
from concurrent.futures import ThreadPoolExecutor

import httpx
import psutil
import pytest

from hybridwatch.engines.launch import Launch
from hybridwatch.engines.pair_proxy import FAILED_SIDE
from hybridwatch.engines.server import DisaggregatedServer
from hybridwatch.system.home import home
from hybridwatch_lab.server_check.runner import run_check
from tests.engine.conftest import HEALTHY

# Two engines start at once, here perhaps twice.
pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("two engines and real NIXL between them"),
    pytest.mark.timeout(900),
]

SHORT, LONG = 36, 360
CONCURRENCY = 3


@pytest.fixture(scope="module")
def launch(sides, scenario):
    spec = sides[HEALTHY].spec
    return Launch(
        python=spec.interpreter,
        model=home() / "models" / scenario.model,
        served_name=scenario.model,
        engine=scenario.engine,
        graph_replay=True,
        # A prompt of two tokens leaves one to the second engine: docs/findings.md, 2.
        fixes={"one-token-prompt": True},
        environment=spec.env,
        flags=spec.flags,
    )


class Standing:
    """The pair that all tests share; started again after the test that ends it."""

    def __init__(self, launch, folder):
        self._launch, self._folder = launch, folder
        self._pair: DisaggregatedServer | None = None
        self._starts = 0

    def pair(self) -> DisaggregatedServer:
        if self._pair is None:
            self._starts += 1
            self._pair = DisaggregatedServer(self._launch, self._folder / f"{self._starts}.log")
        return self._pair

    def end(self):
        if self._pair is not None:
            self._pair.stop()
            self._pair = None


@pytest.fixture(scope="module")
def standing(launch, tmp_path_factory):
    shared = Standing(launch, tmp_path_factory.mktemp("pair"))
    yield shared
    shared.end()


@pytest.fixture
def pair(standing):
    return standing.pair()


def prompts_of(lengths, seed):
    """Made-up text; the byte-level model takes a letter for a token."""
    letters = random.Random(seed)
    return ["".join(letters.choices("abcdefghijklm ", k=length)) for length in lengths]


def wish(prompt, **more):
    return {
        "model": "tiny-hybrid",
        "prompt": prompt,
        "max_tokens": 24,
        "temperature": 0,
        "ignore_eos": True,
        **more,
    }


def ask(url, body):
    return httpx.post(f"{url}/v1/completions", json=body, timeout=120, trust_env=False)


def texts(url, prompts):
    with ThreadPoolExecutor(CONCURRENCY) as askers:
        answers = list(askers.map(lambda prompt: ask(url, wish(prompt)), prompts))
    return [answer.raise_for_status().json()["choices"][0]["text"] for answer in answers]


def stats(pair):
    return httpx.get(f"{pair.url}/stats", timeout=10, trust_env=False).json()


def fetched_tokens(server):
    """Prompt tokens whose state the engine got from another one, so far."""
    told = httpx.get(f"{server.url}/metrics", timeout=10, trust_env=False).text
    line = r"^vllm:prompt_tokens_by_source_total\{[^}]*external_kv_transfer[^}]*\} (\S+)$"
    (tokens,) = re.findall(line, told, flags=re.MULTILINE)
    return int(float(tokens))


def kill(server):
    """End the front of an engine, the process that answers HTTP, without a chance to clean up."""
    port = httpx.URL(server.url).port
    for process in psutil.Process().children(recursive=True):
        try:
            connections = process.net_connections(kind="inet")
        except psutil.NoSuchProcess:  # one that ends while they are asked is not it
            continue
        if any(c.status == psutil.CONN_LISTEN and c.laddr.port == port for c in connections):
            process.kill()
            return
    pytest.fail(f"nobody listens on {port}")


def test_tokens_are_those_of_one_engine_and_every_request_went_through_both(pair):
    prompts = prompts_of([SHORT, LONG] * 12, seed=1)
    decode = pair.servers[1]
    before, fetched_before = stats(pair), fetched_tokens(decode)
    through_both = texts(pair.url, prompts)
    after, fetched = stats(pair), fetched_tokens(decode)
    assert through_both == texts(decode.url, prompts)
    for count in ("requests", "prefilled", "decoded"):
        assert after[count] - before[count] == len(prompts)
    assert after["failed"] == before["failed"]
    # The decode engine computes the last token of each prompt itself, and no other.
    assert fetched - fetched_before == sum(len(prompt) - 1 for prompt in prompts)
    assert stats(pair) == after
    assert fetched_tokens(decode) == fetched


def test_stream_says_what_the_whole_answer_says(pair):
    (prompt,) = prompts_of([SHORT], seed=2)
    (whole,) = texts(pair.url, [prompt])
    body = wish(prompt, stream=True, stream_options={"include_usage": True})
    answer = ask(pair.url, body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.endswith("data: [DONE]\n\n")
    said = re.findall(r'"text":"((?:[^"\\]|\\.)*)"', answer.text)
    assert "".join(said).encode().decode("unicode_escape") == whole


def test_error_of_an_engine_comes_through_with_its_side(pair):
    unknown = ask(pair.url, wish("hello there", model="nobody"))
    assert (unknown.status_code, unknown.headers[FAILED_SIDE]) == (404, "prefill")
    # The prefill engine is asked for one token, so only the other one finds this too long.
    too_long = ask(pair.url, wish("hello there", max_tokens=2000))
    assert (too_long.status_code, too_long.headers[FAILED_SIDE]) == (400, "decode")
    assert pair.is_well()


def test_pair_listens_on_loopback_only(pair):
    texts(pair.url, prompts_of([SHORT], seed=3))  # the engines' own connections are there by now
    listening = {
        connection.laddr
        for process in psutil.Process().children(recursive=True)
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert {address.ip for address in listening} == {"127.0.0.1"}
    ports = {address.port for address in listening}
    for server in pair.servers:
        assert int(server.launch.environment["VLLM_NIXL_SIDE_CHANNEL_PORT"]) in ports


def test_a_check_of_the_pair_holds(pair):
    report = run_check(pair.url, minutes=0.5)
    assert not report.kill, report.kill.detail
    held = {one["name"] for one in report.whole["relations"] if one["outcome"] == "held"}
    assert "company" in held, report.whole


@pytest.mark.last
def test_killed_engines_are_named_nothing_hangs_and_nothing_stays(standing):
    pair = standing.pair()
    family = psutil.Process().children(recursive=True)
    try:
        assert_a_killed_decode_engine_breaks_its_stream(pair)
        refused = ask(pair.url, wish("hello there"))
        assert (refused.status_code, refused.headers[FAILED_SIDE]) == (502, "decode")
        assert refused.json()["error"]["side"] == "decode"
        assert not pair.is_well()
        kill(pair.servers[0])
        refused = ask(pair.url, wish("hello there"))
        assert (refused.status_code, refused.headers[FAILED_SIDE]) == (502, "prefill")
        tail = pair.error("gone").log_tail
    finally:
        standing.end()
    assert all(f"--- {part}" in tail for part in ("prefill", "decode", "proxy"))
    assert family
    assert not [process for process in family if process.is_running()]


def assert_a_killed_decode_engine_breaks_its_stream(pair):
    before = stats(pair)["failed"]["decode"]
    body = wish("hello there", max_tokens=900, stream=True)
    with httpx.stream(
        "POST", f"{pair.url}/v1/completions", json=body, timeout=60, trust_env=False
    ) as answer:
        lines = answer.iter_lines()
        seen = [next(lines)]
        kill(pair.servers[1])
        with pytest.raises(httpx.RemoteProtocolError):
            seen.extend(lines)
    assert '"side": "decode"' in "\n".join(seen)
    assert stats(pair)["failed"]["decode"] == before + 1
