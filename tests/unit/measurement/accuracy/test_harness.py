"""lm-eval runs over a real connection; what comes back is what the server answered."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from hybridwatch.errors import MeasurementError, ScenarioError
from hybridwatch.measurement.accuracy import harness
from hybridwatch.measurement.accuracy.harness import (
    TASKS,
    LmEval,
    fetch_tasks,
    read_answers,
)
from hybridwatch.records.run import Answer
from hybridwatch.scenarios.scenario import Accuracy
from hybridwatch.system.guarded import ConversingProcess
from tests.live_server import LiveServer, QuietHandler, serving
from tests.waiting import LIMIT_S, wait_until

TASK_NAMES = ("recall", "word_problems")
DOCUMENTS = 12

Reply = Callable[[str], tuple[int, bytes]]


class Server(LiveServer):
    """Answers ``/v1/completions`` as a planned function of the prompt says."""

    reply: Reply
    seen: list[dict[str, Any]]


class Handler(QuietHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet: no 40 ms of delayed acknowledgement
    server: Server

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        sent = self.rfile.read(length)
        if len(sent) < length:
            return  # who asked was ended meanwhile
        body = json.loads(sent)
        self.server.seen.append({**body, "path": self.path})
        prompt = body["prompt"]
        status, content = self.server.reply(prompt if isinstance(prompt, str) else prompt[0])
        self.reply(status, content, {"Content-Type": "application/json"})


def completion(text: str | None) -> tuple[int, bytes]:
    return 200, json.dumps({"choices": [{"index": 0, "text": text}]}).encode()


def shipped(task: str) -> list[dict[str, str]]:
    lines = (TASKS / f"{task}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines[:DOCUMENTS]]


PLANNED_WRONG = {  # documents by task
    "recall": {1, 5, 11},
    "word_problems": {0, 7},
}
PLAN = {
    document["prompt"]: "wrong" if number in PLANNED_WRONG[task] else document["answer"]
    for task in TASK_NAMES
    for number, document in enumerate(shipped(task))
}


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server(Handler)
    running.seen = []
    running.reply = lambda prompt: completion(PLAN[prompt])
    with serving(running):
        yield running


def asked(
    lm_eval: LmEval,
    server: Server,
    work_dir: Path,
    timeout_s: float = LIMIT_S,
    url: str | None = None,
    **changes: Any,
) -> tuple[Answer, ...]:
    fields = {"tasks": TASK_NAMES, "documents": DOCUMENTS, "max_concurrency": 3}
    accuracy = Accuracy.model_validate({**fields, **changes})
    url = url or f"{server.url}/v1/completions"
    return lm_eval.run_tasks(accuracy, url, "tiny-hybrid", timeout_s, work_dir)


@pytest.fixture
def lm_eval(tmp_path, monkeypatch) -> Iterator[LmEval]:
    monkeypatch.setattr(harness, "_END_S", LIMIT_S)  # as long as a busy machine takes
    with LmEval(tmp_path) as running:
        yield running


def processes_of(work_dir: Path) -> list[int]:
    """Whatever works in a folder."""
    found = psutil.process_iter(["cwd"])
    return [p.pid for p in found if p.info["cwd"] == str(work_dir)]


@pytest.mark.parametrize("max_concurrency", [1, 3])
def test_answers_show_exactly_the_planned_pattern(server, tmp_path, lm_eval, max_concurrency):
    answers = asked(lm_eval, server, tmp_path, max_concurrency=max_concurrency)
    order = [(task, number) for task in TASK_NAMES for number in range(DOCUMENTS)]
    assert [(answer.task, answer.doc_id) for answer in answers] == order
    for answer in answers:
        assert answer.correct == (answer.doc_id not in PLANNED_WRONG[answer.task])
        assert answer.prompt == shipped(answer.task)[answer.doc_id]["prompt"]
        assert answer.task_version == "1"
        assert len({answer.doc_hash, answer.prompt_hash, answer.target_hash}) == 3
    first = answers[0]
    assert first.response == first.target == shipped("recall")[0]["answer"]
    assert answers[1].response == "wrong"
    assert len(server.seen) == 2 * DOCUMENTS
    assert {sent["path"] for sent in server.seen} == {"/v1/completions"}
    assert {(sent["model"], sent["temperature"]) for sent in server.seen} == {("tiny-hybrid", 0.0)}
    assert processes_of(tmp_path)
    lm_eval.stop()
    assert processes_of(tmp_path) == []


def lm_eval_processes(work_dir: Path) -> list[int]:
    """The one behind the guard."""
    return [pid for pid in processes_of(work_dir) if not psutil.Process(pid).children()]


def test_two_passes_of_one_process_give_the_same_hashes(server, tmp_path, lm_eval):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one = asked(lm_eval, server, tmp_path / "a", tasks=("recall",))
    (process,) = lm_eval_processes(tmp_path)
    two = asked(lm_eval, server, tmp_path / "b", tasks=("recall",))
    assert one == two
    assert lm_eval_processes(tmp_path) == [process]


def test_tasks_of_other_numbers_of_documents_follow_one_another(server, tmp_path, lm_eval):
    few, many = (asked(lm_eval, server, tmp_path, documents=documents) for documents in (2, 5))
    assert (len(few), len(many)) == (2 * len(TASK_NAMES), 5 * len(TASK_NAMES))


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ((500, b'{"error": "out of memory"}'), "lm-eval ended with status 1: .*500"),
        ((200, b"<html>hello</html>"), "lm-eval ended with status 1: .*JSON"),
        ((200, b'{"object": "list"}'), "lm-eval ended with status 1: KeyError: 'choices'"),
        (completion(None), "task recall: document 0 was answered without a text"),
    ],
    ids=["status-500", "no-json", "no-choices", "null-text"],
)
def test_a_broken_server_is_a_failed_measurement(server, tmp_path, lm_eval, reply, message):
    right, server.reply = server.reply, lambda _: reply
    with pytest.raises(MeasurementError) as caught:
        # One at a time: of two that fail together, the second would report only the disconnection.
        asked(lm_eval, server, tmp_path, tasks=("recall",), documents=1, max_concurrency=1)
    first_line = str(caught.value).splitlines()[0]
    assert re.match(message, first_line), first_line
    server.reply = right
    assert len(asked(lm_eval, server, tmp_path, tasks=("recall",), documents=1)) == 1


def test_a_hanging_server_is_given_up_in_time(server, tmp_path, lm_eval, monkeypatch):
    release = threading.Event()

    def hang(_: str) -> tuple[int, bytes]:
        release.wait(LIMIT_S)
        return completion("late")

    class Patient(ConversingProcess):
        """Has its limit behind it as soon as the server has been asked."""

        def answer(self, timeout_s: float) -> str:
            assert timeout_s == 10.0
            wait_until(lambda: server.seen, "a request of lm-eval's")
            return super().answer(0.0)

    monkeypatch.setattr(harness, "ConversingProcess", Patient)
    server.reply = hang
    try:
        with pytest.raises(MeasurementError, match=r"^lm-eval did not end in 10 s; its last lines"):
            asked(lm_eval, server, tmp_path, timeout_s=10.0)
        assert processes_of(tmp_path) == [], "while the server still hangs"
    finally:
        release.set()


def test_nobody_listening_is_a_failed_measurement(server, tmp_path, lm_eval):
    nowhere = "http://127.0.0.1:9/v1/completions"  # the discard port, which nobody serves
    with pytest.raises(MeasurementError, match=r"^lm-eval ended with status 1"):
        asked(lm_eval, server, tmp_path, documents=1, url=nowhere)


def test_more_documents_than_the_task_has_are_refused(server, tmp_path, lm_eval):
    server.reply = lambda _: completion("x")
    with pytest.raises(MeasurementError, match="task recall has 250 documents, 251 are needed"):
        asked(lm_eval, server, tmp_path, tasks=("recall",), documents=251)


def evaluation(rows: Any) -> dict[str, Any]:
    return {
        "versions": {"sums": 3.0},
        "n-samples": {"sums": {"original": 9, "effective": 2}},
        "samples": {"sums": rows},
    }


def row(doc_id: int, name: str, score: float) -> dict[str, Any]:
    return {
        "doc_id": doc_id,
        "filter": name,
        "arguments": [["1+1=", {}]],
        "resps": [["the answer is 2"]],
        "filtered_resps": ["2"],
        "target": 2,
        "metrics": ["exact_match"],
        "exact_match": score,
        "doc_hash": "d",
        "prompt_hash": "p",
        "target_hash": "t",
    }


def test_of_several_filters_the_strict_one_counts_and_is_named():
    scores = {"flexible": 0.0, "strict-match": 1.0}
    rows = [row(number, name, score) for number in (0, 1) for name, score in scores.items()]
    answers = read_answers(evaluation(rows), {"sums": "sums"}, 2)
    assert [answer.correct for answer in answers] == [True, True]
    assert {answer.task_version for answer in answers} == {"3.0/strict-match"}
    assert answers[0].target == "2"


def test_a_missing_document_is_reported():
    with pytest.raises(MeasurementError, match="1 of 2 documents have no answer, first number 0"):
        read_answers(evaluation([row(1, "none", 1.0)]), {"sums": "sums"}, 2)


@pytest.mark.parametrize("rows", [[], [{"doc_id": 0}], "text"])
def test_a_log_of_another_form_is_reported(rows):
    with pytest.raises(MeasurementError, match="lm-eval's samples cannot be read"):
        read_answers(evaluation(rows), {"sums": "sums"}, 1)


def test_our_tasks_are_here_and_start_nothing(tmp_path):
    fetch_tasks(TASK_NAMES, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_task_that_nobody_knows_is_one_line(tmp_path):
    with pytest.raises(ScenarioError) as caught:
        fetch_tasks(("recall", "no_such_task"), tmp_path)
    (line,) = str(caught.value).splitlines()
    assert line.startswith("the tasks no_such_task cannot be had: lm-eval ended with status 1: ")
