"""The result of a check as lines for a terminal."""

from collections.abc import Iterator
from typing import Final

from hybridwatch.server_check.result import (
    PAIR_RELATIONS,
    RELATIONS,
    CheckResult,
    PairResult,
    Tally,
)

_MARKS: Final = {
    "held": "\N{HEAVY CHECK MARK}",
    "broke": "\N{HEAVY MULTIPLICATION X}",
    "within rounding": "\N{HEAVY CHECK MARK}",
    "not asked": "\N{MIDDLE DOT}",
    "unknown": "?",
}
_SAYS: Final = {**PAIR_RELATIONS, **RELATIONS}
_WIDTH: Final = max(map(len, RELATIONS))
_OUTCOME_WIDTH: Final = max(map(len, _MARKS))
_LONGEST_LINE: Final = 400


def write_result(result: CheckResult) -> Iterator[str]:
    """Write what held, what broke with its requests, what was not asked, and errors."""
    if result.pair is None:
        yield f"{result.url}: {result.model}"
    else:
        yield f"{result.pair.url} against {result.url}: {result.model}"
    for tally in result.tallies.values():
        yield _line(tally)
    yield ""
    if result.pair is not None:
        yield from _speeds(result.pair)
    yield from _facts(result)
    for tally in result.tallies.values():
        for number, found in enumerate(tally.breaks):
            yield ""
            yield f"{tally.name} broke: {found.said}"
            if number == 0:
                yield from (f"  {_short(command)}" for command in found.curl)
        if tally.broken > len(tally.breaks):
            yield f"  {tally.broken - len(tally.breaks)} more of {tally.name}"
    yield ""
    yield _summary(result)


def _line(tally: Tally) -> str:
    counts = f"{tally.checked} checked" if tally.checked else ""
    if tally.broken:
        counts += f", {tally.broken} broke"
    if tally.within_rounding:
        counts += f", {tally.within_rounding} within rounding"
    if tally.undecided:
        counts += f", {tally.undecided} undecided: the server gives no logarithms"
    said = "; ".join(filter(None, (counts or _SAYS[tally.name], tally.reason)))
    outcome = tally.outcome
    return f"  {_MARKS[outcome]} {tally.name:<{_WIDTH}}  {outcome:<{_OUTCOME_WIDTH}}  {said}"


def _speeds(pair: PairResult) -> Iterator[str]:
    for one in pair.speeds:
        ratio, around = one["ratio"], one["interval"]
        if around is None:
            said = f"{one['blocks']} blocks are too few for an interval"
        else:
            said = f"{around[0]:.3f} to {around[1]:.3f}, {one['blocks']} blocks"
        yield f"  {one['name']}: {ratio:.3f} times the first server's ({said})"
    if not pair.speeds:
        yield "  speed: not measured, the time was over"
    yield ""


def _facts(result: CheckResult) -> Iterator[str]:
    yield f"{result.requests} requests in {result.minutes:.1f} min"
    if result.margin is not None:
        yield (
            f"near tie: up to {result.margin:.3g} nats"
            if result.margin
            else "near tie: none, answers must be equal bit for bit (--strict)"
        )
    for name, why in result.refused.items():
        yield f"without {name}: {why}"
    if result.errors:
        kinds = ", ".join(f"{count} x {kind}" for kind, count in sorted(result.errors.items()))
        yield f"errors of the server, which are no wrong answers: {kinds}"


def _short(command: str) -> str:
    if len(command) <= _LONGEST_LINE:
        return command
    return f"{command[:_LONGEST_LINE]}… ({len(command)} characters; --json has them)"


def _summary(result: CheckResult) -> str:
    if result.broke:
        said = f"broke: {', '.join(result.broke)}"
    elif result.is_empty:
        said = "nothing could be checked"
    else:
        said = "nothing broke"
    return f"{said} ({result.stopped})" if result.stopped else said
