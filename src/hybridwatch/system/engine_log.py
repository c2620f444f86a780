"""Finds in an engine's log the error that ended it.

An engine is several processes, and each of them logs the failure of the one below it, so what
stands last is seldom the cause. The innermost error comes first, of the engine's own processes
before the one that serves; of a process that the kernel kills only what misses it knows.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_SPEAKER: Final = re.compile(
    r"(?P<process>(?:\([\w .=:-]+\) )*)"  # (EngineCore_DP0 pid=7) (VllmWorker rank=0 pid=8)
    r"(?:\[rank\d+\]:? )?"
    r"(?:(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) "
    r"(?:[\d-]+ [\d:.,]+ )?\[?[\w./<>-]+:\d+\] ?)?"
)
"""Who logs, and when. What a traceback indents stays indented, and so is no error."""
_SURVIVED: Final = frozenset({"DEBUG", "INFO", "WARNING"})
"""Levels of errors that were met and dealt with."""
_FRONT: Final = re.compile(r"\((?:APIServer|ApiServer)")
"""The process that serves HTTP; it only says that another one has ended."""
_RAISED: Final = re.compile(
    r"(?:\w+\.)*(?P<name>(?=[A-Z])\w*(?:Error|Exception|Failure|Timeout))(?:: (?P<text>.*\S))?\s*"
)
_REFUSED: Final = re.compile(r"[\w-]+\.py: error: (?P<refused>.*\S)")
"""What a command line is answered that makes no sense; that raises nothing."""
_INVALID: Final = re.compile(r"\d+ validation errors? for \w+")
"""Of an error that goes on with what is wrong, and with where to read about it."""
_READ_ON: Final = re.compile(r"\s*For further information")
_FRAME: Final = re.compile(r'\s+File "(?P<file>[^<"][^"]*)", line (?P<line>\d+)')
_INSTALLED: Final = re.compile(r".*/site-packages/")
_SILENT: Final = re.compile(
    r"Failed core proc\(s\): \{(?:'(?P<core>\w+)': (?P<status>-?\d+))?"
    r"|Worker proc (?P<worker>\S+) died unexpectedly(?: \(exit code: (?P<code>-?\d+)\))?"
    r"|WorkerProc initialization failed"
)
"""The message for a process that ended without one."""
_KILLED: Final = "-9"
_NATIVE: Final = re.compile(
    r"\s*what\(\): +(?P<what>.*\S)|(?P<fatal>Fatal Python error: .*\S|.*Segmentation fault.*\S)"
)
_WRAPPERS: Final = frozenset(
    {
        *("AsyncEngineDeadError", "BrokenPipeError", "BrokenProcessPool", "CancelledError"),
        *("ClientConnectorError", "ClientOSError", "ConnectError", "ConnectionError"),
        *("ConnectionRefusedError", "ConnectionResetError", "EngineDeadError"),
        *("EngineGenerateError", "MQEngineDeadError", "ReadError", "RemoteProtocolError"),
        "ServerDisconnectedError",
    }
)
"""They say that something else has ended."""
_POINTS_ELSEWHERE: Final = re.compile(
    r"root cause|stack trace|initialization failed|died unexpectedly", re.IGNORECASE
)
_HANDED_ON: Final = re.compile(r"^Worker failed with error '(?P<text>.*?)'?$")
_LONGEST: Final = 240
"""Characters of a cause: a message about memory goes on with advice for several lines."""
_AROUND: Final = 12
"""Lines of an excerpt from the root on: a compiler's own words come behind its command."""


@dataclass(frozen=True, slots=True)
class _Line:
    process: str
    level: str | None
    message: str


@dataclass(frozen=True, slots=True)
class _Root:
    begin: int
    text: str
    place: str = ""


def find_root(log: str) -> str | None:
    """Find the error that a log, whole or an excerpt, of all processes of an engine is about.

    Such as ``RuntimeError: CUDA error: an illegal memory access was encountered``: the first error
    of the engine's own processes that does not point at another one, else the first of the process
    that serves, else which process has ended without a word.
    """
    found = _root_in(log.splitlines())
    return None if found is None else found.text


def first_cause(log: str) -> str | None:
    """Find the same with its place, such as ``KeyError: 'x' (vllm/v1/worker/utils.py:12)``."""
    found = _root_in(log.splitlines())
    if found is None:
        return None
    text = found.text if len(found.text) <= _LONGEST else f"{found.text[:_LONGEST]}\u2026"
    return f"{text} ({found.place})" if found.place else text


def excerpt(log: str, last: int) -> str:
    """Cut a log down to its last lines, behind its root where that stands further up."""
    lines = log.splitlines(keepends=True)
    begin = max(0, len(lines) - last)
    found = _root_in(lines)
    if found is None or found.begin >= begin:
        return "".join(lines[begin:])
    root = lines[found.begin : min(found.begin + _AROUND, begin)]
    gap = ["...\n"] if found.begin + _AROUND < begin else []
    return "".join([*root, *gap, *lines[begin:]])


def _root_in(lines: Sequence[str]) -> _Root | None:
    parsed = [_parsed(line) for line in lines]
    by_front = None
    for number, error in _errors(parsed):
        if not _FRONT.match(parsed[number].process):
            return _whole(parsed, number, error)
        by_front = by_front or (number, error)
    return _silent_end(parsed) if by_front is None else _whole(parsed, *by_front)


def _parsed(line: str) -> _Line:
    plain = _COLOUR.sub("", line).rstrip()
    speaker = _SPEAKER.match(plain)
    assert speaker is not None  # noqa: S101 - every part of it may be lacking
    return _Line(speaker["process"], speaker["level"], plain[speaker.end() :])


def _errors(lines: Sequence[_Line]) -> Iterator[tuple[int, str]]:
    errors = ((at, line, _error(line.message)) for at, line in enumerate(lines))
    return ((at, error) for at, line, error in errors if error and line.level not in _SURVIVED)


def _whole(lines: Sequence[_Line], number: int, error: str) -> _Root:
    """Add what an error says in the lines behind it, and the innermost place in those before."""
    own = [at for at, line in enumerate(lines) if line.process == lines[number].process]
    at = own.index(number)
    if _INVALID.search(error):
        messages = [lines[one].message.strip() for one in own[at + 1 : at + 1 + _AROUND]]
        end = next((n for n, one in enumerate(messages) if _READ_ON.match(one)), 0)
        error = ": ".join([error, *(one.partition(" [type=")[0] for one in messages[:end])])
    for one in reversed(own[:at]):
        if not lines[one].message.startswith(" "):
            break
        if frame := _FRAME.match(lines[one].message):
            return _Root(one, error, f"{_INSTALLED.sub('', frame['file'])}:{frame['line']}")
    return _Root(number, error)


def _silent_end(lines: Sequence[_Line]) -> _Root | None:
    for number, line in enumerate(lines):
        if gone := _SILENT.search(line.message):
            status = gone["status"] or gone["code"]
            why = "it crashed or was killed" if status is None else f"status {status}"
            if status == _KILLED:
                why = "killed, as the kernel does where memory runs out"
            who = gone["core"] or gone["worker"] or "a process of the engine"
            return _Root(number, f"{who} ended without a word: {why}")
    return None


def _error(message: str) -> str | None:
    if found := _RAISED.fullmatch(message):
        text = found["text"] or ""
        if found["name"] in _WRAPPERS or _POINTS_ELSEWHERE.search(text):
            return None
        handed = _HANDED_ON.match(text)
        return handed["text"] if handed else message.strip()
    if refused := _REFUSED.fullmatch(message):
        return refused["refused"]
    native = _NATIVE.fullmatch(message)
    return None if native is None else native["what"] or native["fatal"].strip()
