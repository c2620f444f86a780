"""``hybridwatch nightly``: one night of everything that is watched, for a timer to start.

What brought its confirmed alerts is searched, as ``[bisect]`` of the policy says.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from hybridwatch.analysis.alerts import Alert, AlertGroup, Status
from hybridwatch.analysis.change_review import ChangeReview
from hybridwatch.analysis.policy import AlertBisect, Policy
from hybridwatch.cli.bisect import BisectOptions, search
from hybridwatch.cli.notify import channels_here, tell_at_the_end
from hybridwatch.cli.options import leave, takes_results, verb
from hybridwatch.cli.subjects import (
    build_option,
    chosen,
    takes_build,
    takes_line,
    takes_profile,
    takes_scenarios,
    takes_second_look,
)
from hybridwatch.cli.terminal import say
from hybridwatch.database.queries import open_index
from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.check import require_installed
from hybridwatch.engines.code_tree import git
from hybridwatch.engines.preflight import Needs, require_machine
from hybridwatch.errors import BuildError, HybridwatchError
from hybridwatch.orchestration.bisect.alert_answers import (
    answer_line,
    find_answer,
    is_final,
    keep_answer,
)
from hybridwatch.orchestration.bisect.journal import SearchAnswer
from hybridwatch.orchestration.fleet.driver import PROBES
from hybridwatch.orchestration.nightly.checkout import checkout_here, takes_policy
from hybridwatch.orchestration.nightly.night import GATE, LOG, REPORT, NightError, NightPlan, hold
from hybridwatch.pages.screens.screen import ScreenSource, alerts_here
from hybridwatch.pages.screens.suspects import find_search, list_suspects
from hybridwatch.reports.alert_text import is_control
from hybridwatch.reports.pull_request import render_title
from hybridwatch.system.home import home
from hybridwatch.system.python_command import python_command
from hybridwatch.system.stopping import stoppable

_MINUTE: Final = 60.0
_LONGEST: Final = 1000


def bisect_alerts(
    findings: ChangeReview,
    seconds: float,
    say: Callable[[str], None],
    results: Path,
    clock: Callable[[], float] = time.monotonic,
) -> ChangeReview:
    """Search each confirmed alert of the night once, the newest first, and add the answers.

    No measurement begins after ``seconds``, nor after the minutes of the policy.
    """
    wanted = findings.policy.bisect
    if wanted is None or not findings.reports:
        return findings
    until = clock() + min(seconds, wanted.minutes * _MINUTE)
    checkout = replace(checkout_here(), policy=findings.policy)
    index, now = open_index(results), datetime.now(UTC)
    source = ScreenSource(results, index, now, checkout=lambda: checkout)
    here = {report.contender.testbed.id for report in findings.reports}
    searched: defaultdict[str, list[str]] = defaultdict(list)
    begun = min(report.contender.started_at or now for report in findings.reports)
    for group, members in _confirmed(alerts_here(source), begun):
        found = find_answer(results, group.members)
        left = until - clock()
        if found is None or (left > 0 and not is_final(found)):
            alert = next((one for one in members if one.subject.testbed in here), members[0])
            found = _search(alert, source, wanted, here, left, say)
        line = answer_line(found)
        say(f"bisect {found.scenario}: {line}")
        for run in {one.bad.run_id for one in members}:
            searched[run].append(line)
    return replace(findings, searched=searched)


def _confirmed(
    groups: Sequence[AlertGroup], begun: datetime
) -> Iterator[tuple[AlertGroup, list[Alert]]]:
    """Yield the open alerts, the newest first, with the members that are bad since ``begun``."""
    for group in sorted(groups, key=lambda group: group.opened_by.place, reverse=True):
        members = [
            one
            for one in group.members
            if one.status is Status.OPEN
            and one.is_confirmed
            and not is_control(one)
            and one.bad.started_at >= begun
        ]
        if members:
            yield group, members


def _search(
    alert: Alert,
    source: ScreenSource,
    wanted: AlertBisect,
    here: set[str],
    seconds: float,
    say: Callable[[str], None],
) -> SearchAnswer:
    """Search one alert, and keep the answer, or why there is none."""
    scenario = alert.subject.scenario
    try:
        options = _options(alert, source, wanted, here, seconds)
        document = search(scenario, options, source.results, say, store=source.results / PROBES)
        return keep_answer(source.results, alert, document)
    except (HybridwatchError, OSError) as error:
        nothing = dict.fromkeys(("answer", "confirmation", "repeat"))
        facts = {"schema_version": 1, "scenario": scenario, "confirmed": False, **nothing}
        why_not = " ".join(str(error).split())[:_LONGEST]
        return keep_answer(source.results, alert, {**facts, "why_not": why_not})


def _options(
    alert: Alert, source: ScreenSource, wanted: AlertBisect, here: set[str], seconds: float
) -> BisectOptions:
    """Say what to search; a ``BuildError`` says why nothing can be."""
    if alert.subject.testbed not in here:
        raise BuildError(
            f"it was measured on {alert.subject.testbed}, and this is {', '.join(sorted(here))}"
        )
    suspects = list_suspects(alert, source)
    if suspects is None:
        raise BuildError("it is not known between which two runs it came")
    if (needed := find_search(alert, suspects)) is None:
        raise BuildError(f"both ends are {suspects.culprits.bad.build.label}: nothing is between")
    good, bad, metric, in_clone = needed
    if in_clone and not wanted.repo:
        raise BuildError(
            f"commits lie between {good} and {bad}: expected a clone of vLLM as repo in [bisect] "
            "of the policy"
        )
    if seconds <= 0:
        raise BuildError("the time for searches was up; the next night goes on")
    repo = Path(wanted.repo).expanduser() if wanted.repo else None
    return BisectOptions(good, bad, metric, seconds / _MINUTE, repo, wanted.base)


@verb("nightly", "smoke --hours 2", "smoke --baseline cpu-0.27.1 --build cpu-0.28.0")
@takes_scenarios
@takes_build("The engine build to watch.")
@build_option(
    "--baseline",
    help="The build to measure in turn with it.  [default: the same build, an A/A night]",
)
@takes_line
@click.option(
    "--hours",
    type=click.FloatRange(0, min_open=True),
    default=6.0,
    show_default=True,
    help="After this time nothing more is measured.",
)
@takes_second_look
@takes_profile
@takes_results("Folder that gets records, verdicts and nights.")
@click.option(
    "--asv-config",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="asv's configuration.  [default: asv.conf.json of the checkout]",
)
@takes_policy
def command(
    scenarios: tuple[str, ...],
    results: Path,
    policy: Policy,
    *,
    build: str,
    baseline: str | None,
    hours: float,
    asv_config: Path | None,
    **how: Any,
) -> None:
    """Measure each SCENARIO through asv, judge, decide, publish.

    Without SCENARIO, those that the policy expects. A second call on the same day adds nothing;
    after an interruption the next call continues. Confirmed alerts are searched if the policy says
    so (docs/bisect.md). The results are the records, asv's site, a
    Markdown report and the answer of the gate. The exit status is 1 when the gate fails. Where the
    home has a notify.toml, what is new is sent (docs/notify.md); what does not get through is kept,
    and the exit status is 1 as well.
    """
    channels = channels_here()  # what is wrong with the file is better said before a night
    labels = (build, baseline or build)
    specs = {spec.name: spec for spec in (parse_label(label).spec for label in labels)}
    for spec in specs.values():
        require_installed(spec)
    wanted = chosen(scenarios or policy.expected, labels)
    for one in wanted:
        require_machine(Needs.of(one, tuple(specs.values())))
    plan = NightPlan(
        scenarios=[one.id for one in wanted],
        build=build,
        baseline=baseline or build,
        commit=_commit(),
        results=results,
        policy=policy,
        asv=python_command("-m", "asv"),
        config=asv_config or home() / "asv.conf.json",
        folder=home(),
        seconds=hours * 3600,
        search=partial(bisect_alerts, results=results),
        **how,
    )
    with stoppable():
        folder, findings = hold(plan, datetime.now(UTC).date(), say)
    for name, file in (("gate", GATE), ("report", REPORT), ("log", LOG)):
        say(f"{name + ':':<8}{folder / file}")
    passed = findings.gate.passed
    say(f"{'pass' if passed else 'fail'}: {render_title(findings)}")
    sent = tell_at_the_end(channels, results, policy)
    leave(bad_news=not (passed and sent))


def _commit() -> str:
    try:
        return git(home(), "rev-parse", "HEAD").strip()
    except BuildError as error:
        raise NightError(
            f"{home()}: asv stores numbers by commit, and this folder has none: {error}"
        ) from None
