"""Runs lm-eval tasks against an engine's completion endpoint, and reads its sample log.

lm-eval works in a guarded process. A sample log that is not whole is refused.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

from hybridwatch.engines.server import Stopped
from hybridwatch.errors import MeasurementError, ScenarioError
from hybridwatch.records.readings import strictest, version_read
from hybridwatch.records.run import Answer
from hybridwatch.scenarios.scenario import Accuracy
from hybridwatch.system.guarded import ConversingProcess, GuardedProcess, without_proxy
from hybridwatch.system.python_command import python_command

_EVALUATE: Final = "hybridwatch.measurement.accuracy.evaluate"
NO_TEXT: Final = "<<hybridwatch: the engine answered null>>"
"""What lm-eval has to write for an answer that is ``null``; by itself it writes an empty one,
and a broken answer would pass for a wrong one."""

_SampleRow = Mapping[str, Any]


def read_answers(
    evaluation: Mapping[str, Any], tasks: Mapping[str, str], documents: int
) -> tuple[Answer, ...]:
    """Read every document of every task; of several filters the strictest (``readings``)."""
    try:
        return tuple(
            answer
            for name, eval_name in tasks.items()
            for answer in _task_answers(name, eval_name, evaluation, documents)
        )
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise MeasurementError(f"lm-eval's samples cannot be read: {error!r}") from error


def _task_answers(
    name: str, eval_name: str, evaluation: Mapping[str, Any], documents: int
) -> Iterator[Answer]:
    held = evaluation["n-samples"][eval_name]["original"]
    if held < documents:
        raise MeasurementError(f"task {name} has {held} documents, {documents} are needed")
    rows = evaluation["samples"][eval_name]
    filters = list(dict.fromkeys(row["filter"] for row in rows))
    chosen = strictest(filters)
    version = version_read(str(evaluation["versions"][eval_name]), filters)
    by_document = {row["doc_id"]: row for row in rows if row["filter"] == chosen}
    missing = [number for number in range(documents) if number not in by_document]
    if missing:
        raise MeasurementError(
            f"task {name}: {len(missing)} of {documents} documents have no answer, "
            f"first number {missing[0]}"
        )
    for number in range(documents):
        yield _answer(name, version, by_document[number])


def _answer(task: str, version: str, row: _SampleRow) -> Answer:
    raw, response = row["resps"][0][0], row["filtered_resps"][0]
    if raw == NO_TEXT:
        raise MeasurementError(f"task {task}: document {row['doc_id']} was answered without a text")
    return Answer(
        task=task,
        task_version=version,
        doc_id=int(row["doc_id"]),
        doc_hash=row["doc_hash"],
        prompt_hash=row["prompt_hash"],
        target_hash=row["target_hash"],
        prompt=str(row["arguments"][0][0]),
        target=str(row["target"]),
        response=str(response),
        correct=float(row[row["metrics"][0]]) == 1.0,
    )


TASKS: Final = Path(__file__).parent / "tasks"
"""Our tasks: ``<name>.yaml`` declares lm-eval's task ``hybridwatch_<name>``."""

FETCH_TIMEOUT_S: Final = 600.0
"""lm-eval's own data sets are small; the hub's client takes a minute to say that it has no line."""

_END_S: Final = 10.0
"""Limit for a process that has closed its output to end."""
_TAIL_LINES: Final = 20
_LOG: Final = "lm-eval.log"


class LmEval(Stopped):
    """lm-eval in one process for every trial, begun when needed, ended when it failed."""

    def __init__(self, work_dir: Path) -> None:
        self._work_dir = work_dir
        self._process: ConversingProcess | None = None
        self._offline = True

    def start_ahead(self) -> None:
        """Start it when it is not there, for tasks of ours, and leave it to its imports."""
        self._started(offline=True)

    def run_tasks(
        self, accuracy: Accuracy, url: str, model: str, timeout_s: float, work_dir: Path
    ) -> tuple[Answer, ...]:
        """Ask every document; the answers come by task in their order, then by document.

        Tasks are ours (``recall``) or lm-eval's own (``gsm8k``), which may need the hub.
        ``timeout_s`` includes the start of lm-eval (2 s). ``work_dir`` exists, and gets the request
        and lm-eval's answer. An error's first line says what happened, the others end lm-eval's
        output.
        """
        names = {name: _eval_name(name) for name in accuracy.tasks}
        request_file = work_dir / "lm-eval-request.json"
        answered = work_dir / "lm-eval-answer.json"
        offline = all(name != eval_name for name, eval_name in names.items())
        request = {
            "model_args": {
                "model": model,
                "base_url": url,
                "num_concurrent": accuracy.max_concurrency,
                # Text goes over the wire; the engine has the tokenizer, the harness has none.
                "tokenized_requests": False,
                "tokenizer_backend": None,
            },
            "tasks": list(names.values()),
            "documents": accuracy.documents,
            "include_path": str(TASKS),
            "include_defaults": not offline,
        }
        request_file.write_text(json.dumps(request), encoding="utf-8")
        answered.unlink(missing_ok=True)
        process = self._started(offline=offline)
        with ExitStack() as on_error:
            on_error.callback(self.stop)
            self._evaluate(process, [str(request_file), str(answered)], timeout_s)
            on_error.pop_all()
        try:
            evaluation: Mapping[str, Any] = json.loads(answered.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise MeasurementError(f"lm-eval left no readable answer: {error}") from error
        return read_answers(evaluation, names, accuracy.documents)

    def stop(self) -> None:
        """End it, if it runs."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _started(self, *, offline: bool) -> ConversingProcess:
        if self._process is None or self._offline != offline:
            self.stop()
            self._offline = offline
            self._process = ConversingProcess(
                python_command("-m", _EVALUATE),
                self._work_dir / _LOG,
                _environment(offline=offline),
                folder=self._work_dir,
            )
        return self._process

    def _evaluate(self, process: ConversingProcess, files: list[str], timeout_s: float) -> None:
        try:
            # It has ended after an error that no call waited for; what it answers says so.
            with suppress(BrokenPipeError):
                process.ask(json.dumps(files))
            process.answer(timeout_s)
        except TimeoutError:
            raise _not_in_time(timeout_s, self._work_dir / _LOG) from None
        except EOFError:
            raise _ended(process.wait(_END_S), self._work_dir / _LOG) from None


def fetch_tasks(tasks: Sequence[str], work_dir: Path) -> None:
    """Have the data of lm-eval's own tasks on this machine's disk; ours are here anyway."""
    foreign = [name for name in tasks if _eval_name(name) == name]
    if not foreign:
        return
    log = work_dir / _LOG
    log.unlink(missing_ok=True)
    command = python_command("-m", _EVALUATE, *foreign)
    process = GuardedProcess(command, log, _environment(offline=False), folder=work_dir)
    try:
        status = process.wait(FETCH_TIMEOUT_S)
        error = _ended(status, log) if status else None
    except TimeoutError:
        error = _not_in_time(FETCH_TIMEOUT_S, log)
    finally:
        process.stop()
    if error is not None:
        first, names = str(error).partition("; its last lines:")[0], ", ".join(foreign)
        raise ScenarioError(f"the tasks {names} cannot be had: {first}")


def _eval_name(name: str) -> str:
    return f"hybridwatch_{name}" if (TASKS / f"{name}.yaml").is_file() else name


def _environment(*, offline: bool) -> dict[str, str]:
    environment = {
        **without_proxy(),
        # lm-eval would send it along, and a loopback engine needs none.
        "OPENAI_API_KEY": "",
        "TQDM_DISABLE": "1",  # a progress bar would fill the tail of the log
        "LMEVAL_MODEL_NONE_ANSWER_PLACEHOLDER": NO_TEXT,
    }
    if offline:
        environment |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    return environment


def _not_in_time(timeout_s: float, log: Path) -> MeasurementError:
    return MeasurementError(
        f"lm-eval did not end in {timeout_s:g} s; its last lines:\n{_tail(log)}"
    )


def _ended(status: int, log: Path) -> MeasurementError:
    tail = _tail(log)
    cause = tail.rpartition("\n")[2] or "no output"
    return MeasurementError(f"lm-eval ended with status {status}: {cause}; its last lines:\n{tail}")


def _tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join([line for line in lines if line.strip()][-_TAIL_LINES:])
