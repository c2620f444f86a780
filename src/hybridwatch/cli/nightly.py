"""``hybridwatch nightly``: one night of everything that is watched, for a timer to start."""

import subprocess
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from hybridwatch.analysis.policy import Policy
from hybridwatch.cli.alert_bisects import bisect_alerts
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
from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.check import require_installed
from hybridwatch.engines.preflight import Needs, require_machine
from hybridwatch.orchestration.nightly.checkout import takes_policy
from hybridwatch.orchestration.nightly.night import GATE, LOG, REPORT, NightError, NightPlan, hold
from hybridwatch.reports.pull_request import render_title
from hybridwatch.system.console_text import say
from hybridwatch.system.home import home
from hybridwatch.system.python_command import python_command
from hybridwatch.system.stopping import stoppable


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
    words = ["git", "-C", str(home()), "rev-parse", "HEAD"]
    git = subprocess.run(words, capture_output=True, text=True, check=False)
    if git.returncode != 0:
        raise NightError(
            f"{home()}: asv stores numbers by commit, and this folder has none: {git.stderr}"
        )
    return git.stdout.strip()
