"""Starts ``lab.py``: an engine of its own process that is stepped by hand, for tests."""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hybridwatch.engines.builds import named_build
from hybridwatch.engines.check import require_installed
from hybridwatch.engines.launch import HOST
from hybridwatch.system.guarded import ConversingProcess
from hybridwatch.system.home import home
from tests.engine.conftest import BUILD

START_S, JOB_S = 180.0, 120.0
WHOLE_PROMPTS = 4096
"""A budget that cuts no prompt of a test into chunks."""


class Laboratory:
    """A running ``lab.py``."""

    def __init__(
        self, folder: Path, wishes: Mapping[str, Any], arguments: Mapping[str, Any]
    ) -> None:
        build = named_build(BUILD)
        require_installed(build)
        command = [
            str(build.interpreter),
            str(Path(__file__).with_name("lab.py")),
            str(home() / "models" / "tiny-hybrid"),
            json.dumps(arguments),
        ]
        told = {"HYBRIDWATCH_ENGINE": json.dumps(wishes)}
        environment = {**build.env, **told, "VLLM_HOST_IP": HOST, "HF_HUB_OFFLINE": "1"}
        self._process = ConversingProcess(command, folder / "lab.log", environment)
        with ExitStack() as on_error:
            on_error.callback(self.stop)
            assert json.loads(self._process.answer(START_S)) == {"ready": True}
            on_error.pop_all()

    def do(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Let it work through one job, and bring back its answer; ``lab.py`` says what is what."""
        usual = {"chunk_budget": WHOLE_PROMPTS, "fixes": {}, "eager": False, "idle_batches": 0}
        self._process.ask(json.dumps({**usual, **job}))
        answer: dict[str, Any] = json.loads(self._process.answer(JOB_S))
        return answer

    def stop(self) -> None:
        """End it."""
        self._process.stop()
