"""What ended an engine: the root of it, out of its log.

An engine is several processes, and each of them logs the failure of the one below it, so what
stands last in a log is seldom the cause: the serving process says that the engine core is dead,
every open request says so again with a traceback of its own, and the client only that a connection
broke. The innermost error comes first. Lines that only point at another error are passed over, and
what the serving process says counts only where the engine's own processes say nothing.
"""

import re
from collections.abc import Iterator, Sequence
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
_NATIVE: Final = re.compile(
    r"\s*what\(\): +(?P<what>.*\S)|(?P<fatal>Fatal Python error: .*\S|.*Segmentation fault.*\S)"
)
_WRAPPERS: Final = frozenset(
    {
        "AsyncEngineDeadError",
        "BrokenPipeError",
        "BrokenProcessPool",
        "CancelledError",
        "ClientConnectorError",
        "ClientOSError",
        "ConnectError",
        "ConnectionError",
        "ConnectionRefusedError",
        "ConnectionResetError",
        "EngineDeadError",
        "EngineGenerateError",
        "MQEngineDeadError",
        "ReadError",
        "RemoteProtocolError",
        "ServerDisconnectedError",
    }
)
"""They say that something else has ended."""
_POINTS_ELSEWHERE: Final = re.compile(
    r"root cause|stack trace|initialization failed|died unexpectedly", re.IGNORECASE
)
_HANDED_ON: Final = re.compile(r"^Worker failed with error '(?P<text>.*?)'?$")
_AROUND: Final = 12
"""Lines of an excerpt from the root on: a compiler's own words come behind its command."""


def root_of(log: str) -> str | None:
    """Find the error that a log is about.

    Args:
        log: Of an engine, all of its processes together; the whole, or an excerpt.

    Returns:
        Such as ``RuntimeError: CUDA error: an illegal memory access was encountered``: the first
        error of the engine's own processes that does not point at another one, else the first of
        the process that serves; ``None`` where there is none.
    """
    found = _root_in(log.splitlines())
    return None if found is None else found[1]


def excerpt(log: str, last: int) -> str:
    """Cut a log down to its last lines, behind its root where that stands further up.

    Args:
        log: The whole.
        last: How many lines of its end.
    """
    lines = log.splitlines(keepends=True)
    begin = max(0, len(lines) - last)
    found = _root_in(lines)
    if found is None or found[0] >= begin:
        return "".join(lines[begin:])
    root = lines[found[0] : min(found[0] + _AROUND, begin)]
    gap = ["...\n"] if found[0] + _AROUND < begin else []
    return "".join([*root, *gap, *lines[begin:]])


def _root_in(lines: Sequence[str]) -> tuple[int, str] | None:
    """Find the line of the root, and what it says."""
    by_front = None
    for number, is_front, error in _errors(lines):
        if not is_front:
            return number, error
        by_front = by_front or (number, error)
    return by_front


def _errors(lines: Sequence[str]) -> Iterator[tuple[int, bool, str]]:
    """Yield each error with its line, and whether the serving process says it."""
    for number, line in enumerate(lines):
        plain = _COLOUR.sub("", line).rstrip()
        speaker = _SPEAKER.match(plain)
        assert speaker is not None  # noqa: S101 - every part of it may be lacking
        error = _error(plain[speaker.end() :])
        if error and speaker["level"] not in _SURVIVED:
            yield number, _FRONT.match(speaker["process"]) is not None, error


def _error(message: str) -> str | None:
    """Read the last line of a traceback, or what a library says when it aborts."""
    if found := _RAISED.fullmatch(message):
        text = found["text"] or ""
        if found["name"] in _WRAPPERS or _POINTS_ELSEWHERE.search(text):
            return None
        handed = _HANDED_ON.match(text)
        return handed["text"] if handed else message.strip()
    native = _NATIVE.fullmatch(message)
    return None if native is None else native["what"] or native["fatal"].strip()
