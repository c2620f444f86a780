"""Two data-parallel ranks of a mixture of experts on a CPU, where the collectives are ours."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import psutil
import pytest

from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.check import require_installed
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home
from hybridwatch_lab.embedded_tasks import word_problem_documents
from tests.engine.conftest import BUILD, HEALTHY
from tests.engine.processes import kill_guard_and_server

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("one engine of two ranks, the only one with collectives"),
    pytest.mark.timeout(600),
]

DOCUMENTS = word_problem_documents(24, seed=20_260_001)
MOST_MISTAKES = 1  # of 24; without its experts the model gets a third of these wrong


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """The scenario's engine, with the model whose arithmetic is in its experts."""
    (scenario,) = find(home() / "scenarios", ["curated/dp-dummy-run"])
    scenario = scenario.model_copy(update={"model": "tiny-moe-hybrid"})
    side = parse_label(BUILD)
    require_installed(side.spec)
    work = tmp_path_factory.mktemp("ranks")
    with EnginePool(scenario, (side,), home() / "models", work, print) as pool:
        yield pool.make_ready(HEALTHY)


def test_both_ranks_answer_and_their_experts_work(engine):
    def ask(numbered):
        number, document = numbered
        body = {
            "model": engine.server.launch.served_name,
            "prompt": document.prompt,
            "max_tokens": 40,
            "temperature": 0,
            "stop": "\n",
        }
        rank = {"X-data-parallel-rank": str(number % 2)}
        url = f"{engine.server.url}/v1/completions"
        answer = httpx.post(url, json=body, headers=rank, timeout=60, trust_env=False)
        return answer.json()["choices"][0]["text"]

    engine.control.start_probe("contract")
    with ThreadPoolExecutor(3) as askers:
        said = list(askers.map(ask, enumerate(DOCUMENTS)))
    seen = engine.control.stop_probe("contract")
    wrong = [
        text for text, document in zip(said, DOCUMENTS, strict=True) if text != document.answer
    ]
    assert len(wrong) <= MOST_MISTAKES, wrong
    assert seen["dummy_replays"] > 0, "no rank ever had to wait for the other"
    assert seen["blocks_in_dummy_runs"] == 0


def test_ranks_listen_on_loopback_only(engine):
    assert engine.server.is_well()
    listening = {
        connection.laddr.ip
        for process in psutil.Process().children(recursive=True)
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening
    assert listening <= {"127.0.0.1", "::1"}


@pytest.mark.last
def test_ranks_whose_guard_and_server_are_killed_are_gone(engine):
    assert engine.server.is_well()
    assert kill_guard_and_server() == []
