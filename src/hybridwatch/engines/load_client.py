"""vLLM's serving benchmark client, driven over a pipe; one process serves every trial."""

import json
from pathlib import Path
from typing import Any, Final

from hybridwatch.engines.deployment import Server
from hybridwatch.engines.launch import Launch
from hybridwatch.errors import EngineError
from hybridwatch.scenarios.workload import Generation
from hybridwatch.system.guarded import ConversingProcess, without_proxy

_PERCENTILE_METRICS: Final = "ttft,tpot,itl,e2el"


def client_arguments(launch: Launch, url: str, load: Generation, result: Path) -> list[str]:
    """The client's command line for one trial.

    Also what a person types after ``vllm bench serve``, in the folder of the models, to repeat it
    by hand. The tokenizer is named from there: the client's JSON keeps the name, and a record shall
    not show where a checkout is.
    """
    options = {
        "backend": "openai",
        "base-url": url,
        "endpoint": "/v1/completions",
        "model": launch.served_name,
        "tokenizer": (launch.tokenizer or launch.model).name,
        "dataset-name": "random",
        "random-input-len": str(load.input_tokens),
        "random-output-len": str(load.output_tokens),
        "num-prompts": str(load.prompts),
        "max-concurrency": str(load.max_concurrency),
        "seed": str(load.seed),
        "temperature": "0",
        "percentile-metrics": _PERCENTILE_METRICS,
        **({} if load.request_rate is None else {"request-rate": f"{load.request_rate:g}"}),
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
    """A benchmark client in the engine's environment, started when it is first needed.

    A client that failed is ended, and the next trial gets a new one: after a time-out it might
    still be at work on the trial before.
    """

    def __init__(self, launch: Launch, log: Path) -> None:
        self.launch = launch
        self._log = log
        self._process: ConversingProcess | None = None
        self._answers = False

    def make_ready(self) -> None:
        """Start the client when it is not there, and wait for its imports.

        Raises:
            EngineError: It died or was not ready in time; carries the tail of its log.
        """
        self.start_ahead()
        if not self._answers:
            assert self._process is not None  # noqa: S101 - start_ahead started it
            self._await_answer(self._process, self.launch.start_timeout_s)
            self._answers = True

    def start_ahead(self) -> None:
        """Start the client when it is not there, and leave it to its imports."""
        if self._process is None:
            # No wishes for the plugin: this process holds no engine.
            quiet = {"HF_HUB_OFFLINE": "1", "HYBRIDWATCH_ENGINE": ""}
            self._process = ConversingProcess(
                [str(self.launch.python), "-m", "hybridwatch_engine.load_client"],
                self._log,
                {**self.launch.environment, **without_proxy(), **quiet},
                folder=(self.launch.tokenizer or self.launch.model).parent,
            )

    def run(
        self, server: Server, load: Generation, result: Path, timeout_s: float
    ) -> dict[str, Any]:
        """Run one trial, and give the client's whole JSON.

        Raises:
            EngineError: The engine or the client failed, or some requests did.
        """
        self.make_ready()
        assert self._process is not None  # noqa: S101 - make_ready started it
        arguments = client_arguments(self.launch, server.url, load, result)
        try:
            self._process.ask(json.dumps(arguments))
            self._await_answer(self._process, timeout_s)
        except (EngineError, BrokenPipeError) as error:
            raise server.error(f"the engine could not be measured: {error}") from error
        # The client writes NaN for a statistic of nothing; JSON and our records know no NaN.
        text = result.read_text(encoding="utf-8")
        measured: dict[str, Any] = json.loads(text, parse_constant=lambda _: None)
        if measured["failed"] or measured["completed"] != load.prompts:
            raise server.error(
                f"{measured['failed']} of {load.prompts} requests failed under load; first error: "
                f"{next((text for text in measured['errors'] if text), 'none given')}"
            )
        return measured

    def _await_answer(self, process: ConversingProcess, timeout_s: float) -> None:
        try:
            line = process.answer(timeout_s)
            answer = json.loads(line)
            if answer["ok"]:
                return
            reason = f"failed: {answer['error']}"
        except TimeoutError:
            reason = f"gave no answer in {timeout_s:.0f} s"
        except EOFError:
            reason = "ended"
        except ValueError:
            reason = "answered something that is no JSON"
        tail = process.log_tail()
        self.stop()
        raise EngineError(f"the load client {reason}", tail)

    def stop(self) -> None:
        """End the client, if it runs."""
        if self._process is not None:
            self._process.stop()
            self._process, self._answers = None, False
