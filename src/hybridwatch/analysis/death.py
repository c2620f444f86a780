"""What ended an engine: the root of it, out of the end of its log.

An engine is several processes, and each of them logs the failure of the one below it, so what
stands last in a log is seldom the cause: the serving process says that the engine core is dead,
every open request says so again, and the client only that a connection broke. The innermost error
comes first. Lines that only point at another error are passed over.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from hybridwatch.analysis.cause import Area, Cause, causes_in
from hybridwatch.analysis.subject import phase_of
from hybridwatch.analysis.verdict import FailedTrial, Report
from hybridwatch.record.run import Phase

LONGEST: Final = 160
"""Characters of a reason: a message about memory goes on with advice for several lines."""

_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_SPEAKER: Final = re.compile(
    r"(?:\([\w .=:-]+\) )*"  # (EngineCore_DP0 pid=7) (VllmWorker rank=0 pid=8)
    r"(?:\[rank\d+\]:? )?"
    r"(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) [\d-]+ [\d:.,]+ \[?[\w./<>-]+:\d+\] ?)?"
)
"""Who logs, and when. What a traceback indents stays indented, and so is no error."""
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
_SAYS_NOTHING: Final = frozenset({"AcceleratorError", "Exception", "RuntimeError"})
"""Types that add nothing to their message."""
_HUNG: Final = re.compile(r"time(?:d )?out|\bhung\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Death:
    """Why trials of a report failed.

    Attributes:
        trial: The failed trial that tells most.
        reason: The root of it, one line of at most ``LONGEST`` characters.
        sides: ``baseline``, ``contender`` or both.
        trials: How many failed.
        hung: Whether the engine was there and did not answer in time.
    """

    trial: FailedTrial
    reason: str
    sides: tuple[str, ...]
    trials: int
    hung: bool

    @property
    def ended(self) -> bool:
        """Whether the engine ended, or never came up."""
        return self.trial.engine_died and not self.hung


def death_of(report: Report, cause: Cause) -> Death | None:
    """Find why the trials behind a cause failed.

    Args:
        report: Where the cause was found.
        cause: One of its causes.

    Returns:
        ``None`` for a cause that is no failure, and where nothing is known of the trials.
    """
    if cause.area is not Area.ENGINE:
        return None
    where = _where(cause)
    failed = [one for one in report.failed_trials if not where or (one.side, one.phase) in where]
    if not failed:
        return None
    # The first that says why; a later engine only dies of the same again.
    telling = min(failed, key=lambda one: (not one.engine_died, root_of(one.log_tail) is None))
    root = root_of(telling.log_tail)
    return Death(
        trial=telling,
        reason=bounded(plain(root)) if root else bounded(telling.reason),
        sides=tuple(dict.fromkeys(one.side for one in failed)),
        trials=len(failed),
        hung=root is None and _HUNG.search(telling.reason) is not None,
    )


def deaths_in(report: Report) -> Iterator[Death]:
    """Find the failures of a report that left a log; it has one cause of this kind at most."""
    for cause in causes_in(report):
        death = death_of(report, cause)
        if death is not None and death.trial.log_tail.strip():
            yield death


def root_of(log_tail: str) -> str | None:
    """Find the error that a log is about.

    Args:
        log_tail: The last lines of the log of an engine, all of its processes together.

    Returns:
        Such as ``RuntimeError: CUDA error: an illegal memory access was encountered``: the first
        error that does not point at another one; ``None`` where there is none.
    """
    return next(_roots(log_tail), None)


def plain(root: str) -> str:
    """Write an error without its module, and without a type that says nothing."""
    name, colon, text = root.partition(": ")
    short = name.rpartition(".")[2]
    return text if colon and short in _SAYS_NOTHING else f"{short}{colon}{text}"


def bounded(reason: str) -> str:
    """Put a reason on one line and cut it where it becomes too long."""
    line = " ".join(reason.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}\u2026"


def _where(cause: Cause) -> frozenset[tuple[str, Phase]]:
    """On which side and in which phase values are lacking; nothing without comparisons."""
    compared = [part.comparison for part in cause.parts if part.comparison is not None]
    return frozenset(
        (name, phase_of(comparison.metric))
        for comparison in compared
        for name, side in (("baseline", comparison.baseline), ("contender", comparison.contender))
        if side is None
    )


def _roots(log_tail: str) -> Iterator[str]:
    for line in _COLOUR.sub("", log_tail).splitlines():
        message = line[_length_of_speaker(line) :]
        if found := _RAISED.fullmatch(message):
            text = found["text"] or ""
            if found["name"] in _WRAPPERS or _POINTS_ELSEWHERE.search(text):
                continue
            handed = _HANDED_ON.match(text)
            yield handed["text"] if handed else message.strip()
        elif native := _NATIVE.fullmatch(message):
            yield native["what"] or native["fatal"].strip()


def _length_of_speaker(line: str) -> int:
    found = _SPEAKER.match(line)
    return found.end() if found else 0
