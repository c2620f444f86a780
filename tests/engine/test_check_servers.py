"""A check of a server that is no vLLM: what holds there is not doubted."""

from pathlib import Path

import pytest

from hybridwatch.engines.server import free_port, is_healthy
from hybridwatch.system.guarded import GuardedProcess
from hybridwatch.system.home import home
from hybridwatch_lab.server_check.runner import run_check
from tests.engine.conftest import HEALTHY
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("a server of transformers takes a second for each request"),
]
MODEL = "tiny-hybrid"


def a_hub_cache(folder: Path) -> None:
    """A cache of the hub that has our model under a name."""
    repository = folder / "hub" / f"models--made--{MODEL}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("0", encoding="utf-8")
    (repository / "snapshots").mkdir()
    (repository / "snapshots" / "0").symlink_to(home() / "models" / MODEL)


@pytest.fixture(scope="module")
def transformers_url(sides, tmp_path_factory):
    """The address of transformers' own server, with its model in memory."""
    folder, port = tmp_path_factory.mktemp("transformers"), free_port()
    a_hub_cache(folder)
    program = Path(__file__).with_name("transformers_server.py")
    python = sides[HEALTHY].spec.interpreter
    command = [str(python), str(program), f"made/{MODEL}", str(port)]
    variables = {"HF_HOME": str(folder), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    server = GuardedProcess(command, folder / "log", variables)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: is_healthy(url) or server.exit_status is not None, "up or gone")
        assert server.exit_status is None, server.log_excerpt()
        yield url
    finally:
        server.stop()


def test_a_server_of_transformers_holds(transformers_url):
    report = run_check(transformers_url, minutes=0.5)
    assert not report.kill, report.kill.detail
    outcomes = {one["name"]: one["outcome"] for one in report.whole["relations"]}
    assert "held" in outcomes.values(), outcomes
