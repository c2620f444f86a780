"""The load of an engine: vLLM's benchmark client, and how many steps it took.

Steps are totals of ``/metrics`` (``vllm/v1/metrics/loggers.py``), read while the engine is idle, so
that nothing is added to what is timed.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from hybridwatch.engines.launch import Launch
from hybridwatch.engines.server import EngineServer, Server, open_http
from hybridwatch.errors import EngineError, MeasurementError
from hybridwatch.metrics import SEND_LATENESS
from hybridwatch.scenarios.expansion import expand, list_due_s
from hybridwatch.scenarios.workload import Generation
from hybridwatch.system.guarded import ConversingProcess, without_proxy
from hybridwatch.system.python_command import python_command

_TIMEOUT_S: Final = 30.0

_STEPS: Final = "vllm:iteration_tokens_total_count"
"""Observed once for each step that gave a token to some request."""
_FIRST_TOKENS: Final = "vllm:time_to_first_token_seconds_count"
_LATER_TOKENS: Final = "vllm:inter_token_latency_seconds_count"
"""These two are observed once for each request of such a step, however many tokens it got."""
_TOKENS: Final = "vllm:generation_tokens_total"
_PREEMPTIONS: Final = "vllm:num_preemptions_total"
_COUNTED: Final = frozenset({_STEPS, _FIRST_TOKENS, _LATER_TOKENS, _TOKENS, _PREEMPTIONS})


@dataclass(frozen=True, slots=True)
class StepCounts:
    """What an engine has done, in all since it came up or between two looks.

    Attributes:
        steps: That gave tokens: no dummy run, and none that only computed a part of a prompt.
        shares: Requests that got tokens in a step, added up over the steps.
        tokens: Tokens they got, accepted drafts included.
        preemptions: Times that a request gave up its cache blocks, to begin again later.
    """

    steps: int
    shares: int
    tokens: int
    preemptions: int

    def since(self, earlier: "StepCounts") -> "StepCounts":
        """What came after an earlier look at the same engine."""
        return StepCounts(
            self.steps - earlier.steps,
            self.shares - earlier.shares,
            self.tokens - earlier.tokens,
            self.preemptions - earlier.preemptions,
        )


def read_step_counts(server: Server) -> StepCounts | None:
    """Ask the engine that gives the answers for its totals; of a pair, that is the decode engine.

    ``None`` of one that keeps none, or has several front ends, as vLLM gives data-parallel ranks:
    each that got a token out of a step would count it.
    """
    if server.launch.engine.data_parallel_size > 1:
        return None
    return parse_step_counts(_read_metrics(server.servers[-1]))


def parse_step_counts(text: str) -> StepCounts | None:
    """Read the totals out of Prometheus' text format; ``None`` when one of them is not there."""
    found = _totals(text)
    return _step_counts(found) if len(found) == len(_COUNTED) else None


def read_totals(server: Server) -> StepCounts:
    """Ask for the totals of an engine that keeps statistics; 0 of what it does not count."""
    return _step_counts(_totals(_read_metrics(server.servers[-1])))


def _step_counts(found: Counter[str]) -> StepCounts:
    shares = found[_FIRST_TOKENS] + found[_LATER_TOKENS]
    return StepCounts(found[_STEPS], shares, found[_TOKENS], found[_PREEMPTIONS])


def _totals(text: str) -> Counter[str]:
    """Add up the samples of each name; one that has none is left out."""
    found = Counter[str]()
    for line in text.splitlines():
        # Sample lines are "name{labels} value"; a label's text may hold blanks, but no brace ends
        # a name before the first one.
        name = line.partition("{")[0]
        if name in _COUNTED:
            found[name] += int(float(line.rpartition(" ")[2]))
    return found


def _read_metrics(server: EngineServer) -> str:
    try:
        with open_http(server.url, _TIMEOUT_S) as http:
            return http.get("/metrics").raise_for_status().text
    except httpx.HTTPError as error:
        raise server.error(f"no answer from the engine to /metrics: {error}") from error


_REQUESTS: Final = ".requests"
_REPLAYED: Final = ("prompt", "max_tokens", "delay_s", "after")
_PERCENTILE_METRICS: Final = "ttft,tpot,itl,e2el"


def client_arguments(launch: Launch, url: str, load: Generation, result: Path) -> list[str]:
    """The client's command line for one trial, as one can type it in the models' folder.

    The tokenizer is named from there: a record shall not show where a checkout is.
    """
    file = str(result.with_suffix(_REQUESTS))
    prompts = {
        "dataset-name": "random",
        "random-input-len": str(load.input_tokens),
        "random-output-len": str(load.output_tokens),
        "max-concurrency": str(load.max_concurrency),
    }
    options = {
        "backend": "openai",
        "base-url": url,
        "endpoint": "/v1/completions",
        "model": launch.served_name,
        "tokenizer": (launch.tokenizer or launch.model).name,
        **({"dataset-name": "custom", "dataset-path": file} if load.replay else prompts),
        "num-prompts": str(load.prompts),
        "seed": str(load.seed),
        "temperature": "0",
        "percentile-metrics": _PERCENTILE_METRICS,
        **({} if load.request_rate is None else {"request-rate": f"{load.request_rate:g}"}),
        "result-dir": str(result.parent),
        "result-filename": result.name,
    }
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    if load.slo is not None:
        goals = (f"{name}:{1000 * bound:g}" for name, bound in load.slo.bounds.items())
        words += ["--goodput", *goals]
    # The client asks one request first to see that the server is up; our engine is.
    return [
        *words,
        *("--ready-check-timeout-sec", "0"),
        # Counted by our process: vLLM's client believes the number that the server names.
        *("--extra-body", '{"return_token_ids": true}'),
        "--ignore-eos",
        "--save-result",
        "--save-detailed",
        "--disable-tqdm",
    ]


def write_requests(load: Generation, result: Path) -> float:
    """Write what the client replays, and give the seconds until the last is due."""
    if load.replay is None:
        return load.prompts / load.request_rate if load.request_rate else 0.0
    requests = expand((load.replay,), load.seed)[0].requests
    rows = (json.dumps({key: getattr(one, key) for key in _REPLAYED}) for one in requests)
    result.with_suffix(_REQUESTS).write_text("\n".join(rows), encoding="utf-8")
    return max(list_due_s(requests))


def _require_counts(load: Generation, measured: Mapping[str, Any], received: list[int]) -> None:
    """Refuse a load whose tokens scenario, server and client count differently."""
    wanted = [load.output_tokens] * load.prompts
    if load.replay is not None:
        wanted = [one.output_tokens for one in load.replay.trace]
    reported = measured["output_lens"]
    alike = wanted == reported and sorted(wanted) == sorted(received)  # which come in no order
    if alike and measured["total_output_tokens"] == sum(wanted):
        return
    raise MeasurementError(
        f"the tokens of the load were counted differently: requested {sum(wanted)} in "
        f"{load.prompts} answers of {load.output_tokens}"
        f"{' at most' if load.replay else ''}, the server reported "
        f"{measured['total_output_tokens']} ({_other(wanted, reported)}), the load client received "
        f"{sum(received)} ({_other(sorted(wanted), sorted(received))})"
    )


def _other(wanted: Sequence[int], found: Sequence[int]) -> str:
    pairs = zip(wanted, found, strict=False)
    return f"{sum(count != expected for expected, count in pairs)} of another length"


class LoadClient:
    """A benchmark client in the engine's environment, started when needed, ended when it failed."""

    def __init__(self, launch: Launch, log: Path) -> None:
        self.launch = launch
        self._log = log
        self._process: ConversingProcess | None = None
        self._answers = False

    def make_ready(self) -> None:
        """Start the client when it is not there, and wait for its imports."""
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
                python_command("-m", "hybridwatch_engine.load_client", python=self.launch.python),
                self._log,
                {**self.launch.environment, **without_proxy(), **quiet},
                folder=(self.launch.tokenizer or self.launch.model).parent,
            )

    def run(
        self, server: Server, load: Generation, result: Path, timeout_s: float
    ) -> dict[str, Any]:
        """Run one trial, whose tokens server and client must count alike; gives the whole JSON."""
        self.make_ready()
        assert self._process is not None  # noqa: S101 - make_ready started it
        arguments = client_arguments(self.launch, server.url, load, result)
        last_s = write_requests(load, result)
        try:
            self._process.ask(json.dumps(arguments))
            answer = self._await_answer(self._process, timeout_s + last_s)
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
        _require_counts(load, measured, answer["received"])
        if load.replay is not None:
            # The client counts the wait for a request's time as a queue of its own.
            measured.pop("queue_times", None)
            measured[SEND_LATENESS] = answer["late"]
        return measured

    def _await_answer(self, process: ConversingProcess, timeout_s: float) -> dict[str, Any]:
        try:
            line = process.answer(timeout_s)
            answer: dict[str, Any] = json.loads(line)
            if answer["ok"]:
                return answer
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
