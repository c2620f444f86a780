"""What a gate prints about a cause: a line, then its metrics or the end of a log."""

from collections.abc import Iterator
from typing import Final

from hybridwatch.analysis.change_review import Found
from hybridwatch.analysis.gate import known_as
from hybridwatch.analysis.policy import Action, Policy
from hybridwatch.analysis.wording.cause_text import cause_sentence, find_death
from hybridwatch.reports.escape import last_lines, one_line
from hybridwatch.reports.sentence import write_line

LOG_LINES: Final = 5
"""Of an engine's log; all that was kept of it is in the JSON form."""
_SHOWN: Final = 5


def gate_lines(found: Found, policy: Policy, *, many: bool) -> Iterator[str]:
    """Tell a cause for a log of continuous integration.

    ``policy`` says what is known to be broken. If ``many``, there are several scenarios, so that
    each line has to name its own.
    """
    cause, report = found.cause, found.report
    mark = "" if cause.action is Action.BLOCK else "warning: "
    place = f"{found.place}: " if many else ""
    known = {known_as(c, report, policy) for part in cause.parts if (c := part.comparison)} - {""}
    told = f" (known: {', '.join(sorted(known))})" if known else ""
    yield one_line(f"{mark}{place}{cause_sentence(cause, report)}{told}")
    death = find_death(report, cause)
    if death is not None:
        yield f"    {one_line(f'{death.trial.place}: {death.trial.reason}')}"
        yield from (f"    | {line}" for line in last_lines(death.trial.log_tail, LOG_LINES))
        return
    compared = [part.comparison for part in cause.parts if part.comparison is not None]
    yield from (f"    {one_line(write_line(comparison))}" for comparison in compared[:_SHOWN])
    if len(compared) > _SHOWN:
        yield f"    and {len(compared) - _SHOWN} more"
