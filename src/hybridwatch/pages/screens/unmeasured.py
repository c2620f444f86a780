"""What should have been measured recently and was not: shown first on every page."""

from collections.abc import Iterator, Sequence
from typing import Final

from hybridwatch.analysis.freshness import Gap
from hybridwatch.analysis.wording.labels import plural
from hybridwatch.history.alerts import find_gaps
from hybridwatch.pages.address import address
from hybridwatch.pages.document import FieldKind, Inline, Line, Link, Notice
from hybridwatch.pages.screens.screen import ScreenSource

_NAMED: Final = 8
"""Lines of a notice; the grid marks every scenario."""


def gaps_here(source: ScreenSource) -> tuple[Gap, ...]:
    """Find what the policy expects of this store and was not measured in time."""
    return find_gaps(source.results, source.index, source.checkout(), source.now)


def render_gap(scenario: str, testbed: str, source: ScreenSource) -> Gap | None:
    """Find whether a scenario was not measured in time on a testbed."""
    places = {(scenario, testbed), (scenario, "")}
    return next((gap for gap in gaps_here(source) if (gap.scenario, gap.testbed) in places), None)


def gaps_notice(found: Sequence[Gap]) -> Iterator[Notice]:
    """Name what was not measured in time, with the command that does; nothing without any."""
    if not found:
        return
    lines: list[Line] = [_line(gap) for gap in found[:_NAMED]]
    if len(found) > _NAMED:
        lines.append(f"and {len(found) - _NAMED} more")
    names = dict.fromkeys(gap.scenario for gap in found if gap.scenario)
    if names:
        lines.append("Measure them: hybridwatch run " + " ".join(list(names)[:_NAMED]))
    title = f"{plural(len(found), 'expected measurement')} missing"
    yield Notice(FieldKind.LOUD, title, tuple(lines))


def _line(gap: Gap) -> tuple[Inline, ...]:
    place = f" on {gap.testbed}" if gap.testbed else ""
    if gap.last is None:
        return (f"{gap.scenario or 'everything'}{place}: {gap.reason}",)
    view = address("scenario", scenario=gap.scenario, testbed=gap.last.testbed)
    return (Link(gap.scenario, view), f"{place}: {gap.reason}")
