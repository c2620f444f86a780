"""Runs lm-eval tasks against an engine's completion endpoint.

lm-eval works in a process of its own, bounded and guarded: nothing of it is left when it failed,
hung, or when the harness was interrupted.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hybridwatch.errors import MeasurementError, ScenarioError
from hybridwatch.process import GuardedProcess, without_proxy
from hybridwatch.quality.answers import NO_TEXT, read_answers
from hybridwatch.quality.evaluate import Request
from hybridwatch.record.run import Answer

TASKS: Final = Path(__file__).parent / "tasks"
"""Our tasks: ``<name>.yaml`` declares lm-eval's task ``hybridwatch_<name>``."""

FETCH_TIMEOUT_S: Final = 600.0
"""lm-eval's own data sets are small; the hub's client takes a minute to say that it has no line."""

_TAIL_LINES: Final = 20
_LOG: Final = "lm-eval.log"


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """One accuracy trial.

    Attributes:
        base_url: The endpoint, such as ``http://127.0.0.1:8123/v1/completions``.
        model: The name under which the engine serves the model.
        tasks: Ours (``recall``) or lm-eval's own (``gsm8k``), which may need the hub.
        documents: How many of each task, from the first.
        max_concurrency: Requests in flight at once.
        timeout_s: Seconds for everything, the start of lm-eval (2 s) included.
        work_dir: Existing folder for the request, lm-eval's output and its log.
    """

    base_url: str
    model: str
    tasks: tuple[str, ...]
    documents: int
    max_concurrency: int
    timeout_s: float
    work_dir: Path


def run_tasks(request: TaskRequest) -> tuple[Answer, ...]:
    """Ask every document and read what came back.

    Returns:
        Answers by task in the order of the request, then by document; every document is there.

    Raises:
        MeasurementError: lm-eval failed, did not end in time, or left a document out. The first
            line says what happened, the lines after it are the end of lm-eval's output.
    """
    names = {name: _eval_name(name) for name in request.tasks}
    request_file = request.work_dir / "lm-eval-request.json"
    answered = request.work_dir / "lm-eval-answer.json"
    request_file.write_text(json.dumps(_evaluation(request, names)), encoding="utf-8")
    answered.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "hybridwatch.quality.evaluate",
        str(request_file),
        str(answered),
    ]
    offline = all(name != eval_name for name, eval_name in names.items())
    _finish(command, request.work_dir, _environment(offline=offline), request.timeout_s)
    try:
        evaluation: Mapping[str, Any] = json.loads(answered.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise MeasurementError(f"lm-eval left no readable answer: {error}") from error
    return read_answers(evaluation, names, request.documents)


def fetch_tasks(tasks: Sequence[str], work_dir: Path) -> None:
    """Have the data of lm-eval's own tasks on this machine's disk; ours are here anyway.

    Args:
        tasks: As in a request.
        work_dir: Existing folder for lm-eval's log.

    Raises:
        ScenarioError: A task is unknown, or its data cannot be had.
    """
    foreign = [name for name in tasks if _eval_name(name) == name]
    if not foreign:
        return
    command = [sys.executable, "-m", "hybridwatch.quality.fetch", *foreign]
    try:
        _finish(command, work_dir, _environment(offline=False), FETCH_TIMEOUT_S)
    except MeasurementError as error:
        first, names = str(error).partition("; its last lines:")[0], ", ".join(foreign)
        raise ScenarioError(f"the tasks {names} cannot be had: {first}") from None


def _eval_name(name: str) -> str:
    return f"hybridwatch_{name}" if (TASKS / f"{name}.yaml").is_file() else name


def _evaluation(request: TaskRequest, names: Mapping[str, str]) -> Request:
    return Request(
        model_args={
            "model": request.model,
            "base_url": request.base_url,
            "num_concurrent": request.max_concurrency,
            # Text goes over the wire; the engine has the tokenizer, the harness has none.
            "tokenized_requests": False,
            "tokenizer_backend": None,
        },
        tasks=list(names.values()),
        documents=request.documents,
        include_path=str(TASKS),
        include_defaults=any(name == eval_name for name, eval_name in names.items()),
    )


def _environment(*, offline: bool) -> dict[str, str]:
    environment = {
        **without_proxy(),
        # lm-eval would send it along, and a loopback engine asks for none.
        "OPENAI_API_KEY": "",
        "TQDM_DISABLE": "1",  # a progress bar would fill the tail of the log
        "LMEVAL_MODEL_NONE_ANSWER_PLACEHOLDER": NO_TEXT,
    }
    if offline:
        environment |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    return environment


def _finish(
    command: list[str], work_dir: Path, environment: dict[str, str], timeout_s: float
) -> None:
    """Run lm-eval to its end."""
    log = work_dir / _LOG
    log.unlink(missing_ok=True)
    process = GuardedProcess(command, log, environment, folder=work_dir)
    try:
        status = process.wait(timeout_s)
    except TimeoutError:
        raise MeasurementError(
            f"lm-eval did not end in {timeout_s:g} s; its last lines:\n{_tail(log)}"
        ) from None
    finally:
        process.stop()
    if status != 0:
        tail = _tail(log)
        cause = tail.rpartition("\n")[2] or "no output"
        raise MeasurementError(
            f"lm-eval ended with status {status}: {cause}; its last lines:\n{tail}"
        )


def _tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join([line for line in lines if line.strip()][-_TAIL_LINES:])
