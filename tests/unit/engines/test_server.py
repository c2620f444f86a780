"""What is said of an engine that does not come up."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from hybridwatch.engines import server
from hybridwatch.engines.launch import HOST
from hybridwatch.engines.server import EngineServer
from hybridwatch.errors import EngineError, LateEngineError
from tests.unit.engines.test_launch import launched

RAISED = """\
cat >&2 <<'end'
(EngineCore pid=7) ERROR 11-26 19:19:10 [core.py:1510] Traceback (most recent call last):
(EngineCore pid=7) ERROR 11-26 19:19:10 [core.py:1510]   File "/srv/patch.py", line 13, in load
(EngineCore pid=7) ERROR 11-26 19:19:10 [core.py:1510]     return layers[name]
(EngineCore pid=7) ERROR 11-26 19:19:10 [core.py:1510] KeyError: 'no_such_layer'
RuntimeError: Engine core initialization failed. See root cause above.
end
"""
CAUSE = ": KeyError: 'no_such_layer' (/srv/patch.py:13)"


@pytest.fixture
def start(tmp_path):
    """Start an engine whose interpreter is a shell script."""

    def started(script, wait_s=60.0):
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        python.chmod(0o755)
        launch = replace(launched("smoke/padded-graph-rows", "cpu"), python=python)
        with EngineServer(launch, tmp_path / "log", start_timeout_s=wait_s):
            pytest.fail("it came up")

    return started


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (f"{RAISED}exit 1", f"the engine ended while starting (status 1){CAUSE}"),
        ("exit 3", "the engine ended while starting (status 3)"),
        ("kill -9 $$", "the engine ended while starting (signal 9)"),
    ],
)
def test_an_engine_that_ends_is_told_with_its_cause(start, script, said):
    with pytest.raises(EngineError) as caught:
        start(script)
    assert str(caught.value) == said


def test_a_serving_process_that_waits_for_a_dead_core_is_not_late(start):
    with pytest.raises(EngineError) as caught:
        start(f"{RAISED}sleep 60", wait_s=2.0)
    assert not isinstance(caught.value, LateEngineError)
    assert str(caught.value) == f"the engine does not come up{CAUSE}"


def test_an_engine_that_is_not_up_and_tells_of_nothing_is_late(start):
    with pytest.raises(LateEngineError, match="the engine was not up after 1 s"):
        start("sleep 60", wait_s=1.0)


def test_a_free_port_is_none_that_the_system_gives_to_others_meanwhile():
    first, _ = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    if first < 32_768:
        pytest.skip(f"this system gives ports from {first} on")
    assert all(server.free_port() < first for _ in range(200))


def test_a_port_that_somebody_has_is_not_free(monkeypatch):
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        port = taken.getsockname()[1]
        monkeypatch.setattr(server, "_PORTS", (*[port] * 20_000, *server._PORTS))
        assert port not in {server.free_port() for _ in range(20)}
