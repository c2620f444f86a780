"""vLLM's serving benchmark client, driven over a pipe; one process serves every trial."""

import json
import select
from pathlib import Path
from typing import Any, Final

from hybridwatch.engine.process import GuardedProcess
from hybridwatch.engine.server import EngineServer, Launch
from hybridwatch.errors import EngineError, MeasurementError
from hybridwatch.scenario.scenario import Generation

START_TIMEOUT_S: Final = 120.0
_PERCENTILE_METRICS: Final = "ttft,tpot,itl,e2el"


def client_arguments(launch: Launch, url: str, load: Generation, result: Path) -> list[str]:
    """The client's command line for one trial.

    Also what a person types after ``vllm bench serve`` to repeat it by hand.
    """
    options = {
        "backend": "openai",
        "base-url": url,
        "endpoint": "/v1/completions",
        "model": launch.served_name,
        "tokenizer": str(launch.model),
        "dataset-name": "random",
        "random-input-len": str(load.input_tokens),
        "random-output-len": str(load.output_tokens),
        "num-prompts": str(load.prompts),
        "max-concurrency": str(load.max_concurrency),
        "seed": str(load.seed),
        "temperature": "0",
        "percentile-metrics": _PERCENTILE_METRICS,
        "result-dir": str(result.parent),
        "result-filename": result.name,
    }
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    # The client asks one request first to see that the server is up; our engine is.
    return [
        *words,
        *("--ready-check-timeout-sec", "0"),
        "--ignore-eos",
        "--save-result",
        "--save-detailed",
        "--disable-tqdm",
    ]


class LoadClient:
    """A running benchmark client in the engine's environment.

    Args:
        launch: Of the engine, for interpreter, model and environment.
        log: File for what the client prints.
    """

    def __init__(self, launch: Launch, log: Path) -> None:
        self._launch = launch
        # No wishes for the plugin: this process holds no engine.
        environment = {**launch.environment, "HF_HUB_OFFLINE": "1", "HYBRIDWATCH_ENGINE": ""}
        self._process = GuardedProcess(
            [str(launch.python), "-m", "hybridwatch_engine.load_client"],
            log,
            environment,
            answers=True,
        )
        self._ready = False

    def wait_until_ready(self) -> None:
        """Wait for the client's imports.

        Raises:
            MeasurementError: It died or was not ready in time.
        """
        if not self._ready:
            self._answer(START_TIMEOUT_S)
            self._ready = True

    def run(
        self, server: EngineServer, load: Generation, result: Path, timeout_s: float
    ) -> dict[str, Any]:
        """Run one trial.

        Args:
            server: The engine to load.
            load: The load.
            result: Where the client writes its JSON.
            timeout_s: Limit for the trial.

        Returns:
            The client's JSON, whole.

        Raises:
            EngineError: The engine stopped answering.
            MeasurementError: The client failed, or some requests did.
        """
        self.wait_until_ready()
        assert self._process.requests is not None  # noqa: S101 - set by answers=True
        arguments = client_arguments(self._launch, server.url, load, result)
        self._process.requests.write(json.dumps(arguments) + "\n")
        self._process.requests.flush()
        try:
            self._answer(timeout_s)
        except MeasurementError as error:
            if not server.is_well():
                raise server.error(f"the engine stopped answering under load: {error}") from error
            raise
        measured: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        if measured["failed"] or measured["completed"] != load.prompts:
            raise server.error(
                f"{measured['failed']} of {load.prompts} requests failed under load; first error: "
                f"{next((text for text in measured['errors'] if text), 'none given')}"
            )
        return measured

    def _answer(self, timeout_s: float) -> None:
        """Wait for one answer line.

        The pipe is text with a buffer, but an answer is one line and nothing is sent unasked, so
        a readable descriptor means that the whole answer is there or comes at once.
        """
        assert self._process.responses is not None  # noqa: S101 - set by answers=True
        readable, _, _ = select.select([self._process.responses], [], [], timeout_s)
        if not readable:
            raise self._error(f"gave no answer in {timeout_s:.0f} s")
        line = self._process.responses.readline()
        if not line:
            raise self._error("ended")
        try:
            answer = json.loads(line)
        except ValueError as error:
            raise self._error(f"answered no JSON but {line!r}") from error
        if not answer["ok"]:
            raise self._error(f"failed: {answer['error']}")

    def _error(self, what: str) -> MeasurementError:
        return EngineError(f"the load client {what}", self._process.log_tail())

    def stop(self) -> None:
        """End the client."""
        self._process.stop()
