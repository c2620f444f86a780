"""vLLM's own client in our process, against servers that count their tokens rightly and wrongly."""

import json
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from hybridwatch.engines.launch import Launch
from hybridwatch.engines.load_client import LoadClient
from hybridwatch.errors import EngineError, MeasurementError
from hybridwatch.scenarios.trace import fill_in
from hybridwatch.scenarios.workload import Generation, Workload
from hybridwatch.system.home import home
from tests.engine.conftest import HEALTHY
from tests.live_server import LiveServer, QuietHandler, serving

pytestmark = pytest.mark.engine

LOAD = Generation(prompts=4, input_tokens=8, output_tokens=20, max_concurrency=2, seed=1)
ASKED = "requested 80 in 4 answers of 20"


@dataclass(frozen=True)
class Manner:
    """How a server streams.

    Attributes:
        at_once: Tokens of a chunk, as of accepted drafts.
        text: Of a chunk; a special token has none.
        told: By how much the tokens that it reports at the end are multiplied.
        unsent: Chunks that it leaves out at the end of a stream.
        more: Tokens that it makes beyond those asked for.
        ids: Whether it names the tokens.
    """

    at_once: int = 1
    text: str = "a"
    told: float = 1.0
    unsent: int = 0
    more: int = 0
    ids: bool = True

    def messages(self, asked: int) -> list[dict[str, Any]]:
        made = asked + self.more
        sizes = [min(self.at_once, made - begun) for begun in range(0, made, self.at_once)]
        chunks = [{"index": 0, "text": self.text, "token_ids": [7] * size} for size in sizes]
        if not self.ids:
            chunks = [{**chunk, "token_ids": None} for chunk in chunks]
        sent = chunks[: len(chunks) - self.unsent]
        usage = {"prompt_tokens": 8, "completion_tokens": round(made * self.told)}
        return [*({"choices": [chunk]} for chunk in sent), {"choices": [], "usage": usage}]


class Speaker:
    """What the server of a test does now."""

    manner = Manner()


def handler_of(speaker: Speaker) -> type[BaseHTTPRequestHandler]:
    class Handler(QuietHandler):
        def do_GET(self) -> None:
            self.send_error(404)  # such as /metrics, where the client looks for drafts

        def do_POST(self) -> None:
            body = json.loads(self.body())
            if self.path != "/v1/completions":
                self.send_error(404)  # such as /tokenize
                return
            assert body["ignore_eos"] is body["return_token_ids"] is body["stream"] is True
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for message in speaker.manner.messages(body["max_tokens"]):
                self.wfile.write(f"data: {json.dumps(message)}\n\n".encode())
            self.wfile.write(b": a comment\n\ndata: [DONE]\n\n")

    return Handler


class Server:
    """What the client knows of an engine."""

    def __init__(self, url: str) -> None:
        self.url = url

    def error(self, message: str) -> EngineError:
        return EngineError(message, "")


@pytest.fixture(scope="module")
def ask(sides, scenario, tmp_path_factory):
    """Loads a server that has a manner, by one client for all tests: it takes seconds to import."""
    spec, folder, speaker = sides[HEALTHY].spec, tmp_path_factory.mktemp("client"), Speaker()
    launch = Launch(
        python=spec.interpreter,
        model=home() / "models" / scenario.model,
        served_name=scenario.model,
        engine=scenario.engine,
        graph_replay=False,
        fixes={},
        environment=spec.env,
        flags={},
    )
    client = LoadClient(launch, folder / "client.log")

    def load(manner: Manner, of: Generation = LOAD) -> dict[str, Any]:
        speaker.manner = manner
        return client.run(Server(http.url), of, folder / "result.json", 120.0)  # type: ignore[arg-type]

    with serving(LiveServer(handler_of(speaker))) as http:
        yield load
        client.stop()
    assert not http.faults


@pytest.mark.parametrize(
    "manner",
    [Manner(), Manner(at_once=3), Manner(at_once=20), Manner(text="")],
    ids=["token by token", "drafts", "all at once", "no text"],
)
def test_a_server_that_counts_rightly_is_measured(ask, manner):
    assert ask(manner)["total_output_tokens"] == 80


@pytest.mark.parametrize(
    ("manner", "reported", "received"),
    [
        (Manner(told=1.1), "88 (4 of another length)", "80 (0 of another length)"),
        (Manner(told=1.1, at_once=3, text=""), "88 (4", "80 (0"),
        (Manner(told=0.9), "72 (4", "80 (0"),
        (Manner(unsent=1), "80 (0", "76 (4"),
        (Manner(more=2), "88 (4", "88 (4"),
        (Manner(ids=False), "80 (0", "0 (4"),
    ],
    ids=["a tenth more", "of drafts", "less", "last chunk lost", "longer than asked", "no ids"],
)
def test_a_server_that_counts_wrongly_is_refused_with_both_counts(ask, manner, reported, received):
    with pytest.raises(MeasurementError) as refused:
        ask(manner)
    told = str(refused.value)
    assert ASKED in told
    assert f"the server reported {reported}" in told
    assert f"the load client received {received}" in told
    assert not isinstance(refused.value, EngineError), "the engine is well and goes on"
    assert ask(Manner())["completed"] == 4, "and so does the client"


def test_a_trace_is_replayed_and_then_a_load_of_another_kind(ask, tmp_path):
    rows = [
        {"timestamp": 0, "input_length": 8, "output_length": 20, "session_id": 1},
        {"timestamp": 5, "input_length": 8, "output_length": 3},
        {"delay": 5, "input_length": 8, "output_length": 7, "session_id": 1},
    ]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (tmp_path / "t.jsonl").write_text(text, encoding="utf-8")
    own = {"trace": {"file": "t.jsonl"}, "seed": 1, "generation": {"slo": {"ttft_ms": 60_000}}}
    traced = Workload.model_validate(fill_in(own, [tmp_path], "made")).generation
    result = ask(Manner(), traced)
    assert result["output_lens"] == [20, 3, 7]
    assert len(result["send_lateness"]) == 3
    assert result["request_goodput"] == result["request_throughput"]
    assert "send_lateness" not in ask(Manner())
    with pytest.raises(MeasurementError, match=r"requested 30 in 3 answers of 20 at most"):
        ask(Manner(more=2), traced)
