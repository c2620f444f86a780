"""``hybridwatch fleet run``: drain the queue."""

from pathlib import Path
from typing import Final

import click

from hybridwatch.analysis.wording.labels import plural
from hybridwatch.cli.fleet_queue import open_queue
from hybridwatch.cli.notify_round import channels_here, tell_at_the_end
from hybridwatch.cli.options import examples, print_json, takes_results
from hybridwatch.errors import FleetError
from hybridwatch.orchestration.fleet.cluster import Cluster
from hybridwatch.orchestration.fleet.driver import DriverSettings, DriverSummary, QueueDriver
from hybridwatch.orchestration.fleet.job import AttemptEnd
from hybridwatch.orchestration.fleet.measuring import LocalCluster
from hybridwatch.orchestration.nightly.checkout import policy_here
from hybridwatch.records.store import check_writable
from hybridwatch.system.console_text import say
from hybridwatch.system.stopping import stoppable

_LOCAL: Final = "local"
_BAD_NEWS: Final = 1
_OPEN_DOOR: Final = (
    "Ray runs whatever reaches its ports: keep them in a private network, and set "
    "RAY_AUTH_MODE=token on every host (docs/fleet.md)"
)


@click.command(
    "run",
    epilog=examples(
        "hybridwatch fleet run",
        "hybridwatch fleet run --label kind=epyc",
        "hybridwatch fleet run --address auto --patience 600",
    ),
)
@click.option(
    "--address",
    default=_LOCAL,
    show_default=True,
    metavar="ADDRESS",
    help="local for this machine alone; auto, HOST:PORT or ray://HOST:PORT for a Ray cluster.",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="KEY=VALUE",
    help="With --address local, what this machine is; may be repeated.",
)
@click.option(
    "--gpus", type=click.IntRange(0), default=0, help="With --address local, the GPUs it has."
)
@click.option(
    "--tries",
    type=click.IntRange(1, 10),
    default=3,
    show_default=True,
    help="How often a job is tried that leaves no record.",
)
@click.option(
    "--patience",
    type=click.FloatRange(0),
    default=60.0,
    show_default=True,
    help="Seconds to stay while nothing can be started, since hosts may come back.",
)
@takes_results("Folder that gets the records, and whose database has the queue.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
def command(
    *,
    address: str,
    labels: tuple[str, ...],
    gpus: int,
    tries: int,
    patience: float,
    results: Path,
    as_json: bool,
) -> None:
    """Measure what is in the queue, until nothing is left that can be.

    Several may run at once on a PostgreSQL, and each may be ended at any time: the next one
    goes on. The exit status is 1 when a job was given up, or waits for a host that is not there.
    Where the home has a notify.toml, what is new is sent (docs/notify.md); what does not get
    through is kept, and the exit status is 1 as well.
    """
    channels, policy = channels_here(), policy_here()
    check_writable(results)
    job_queue = open_queue(results, tries)
    cluster = _cluster(address, labels, gpus)
    driver = QueueDriver(
        job_queue=job_queue,
        cluster=cluster,
        results=results,
        say=lambda line: say(line, err=as_json),
        settings=DriverSettings(patience_s=patience),
    )
    with stoppable():
        summary = driver.drain()
    _tell(summary, as_json=as_json)
    told = tell_at_the_end(channels, results, policy, err=as_json)
    if summary.given_up or summary.left or not told:
        raise click.exceptions.Exit(_BAD_NEWS)


def _cluster(address: str, labels: tuple[str, ...], gpus: int) -> Cluster:
    if address == _LOCAL:
        return LocalCluster.of_this_machine(dict(map(_label, labels)), gpus)
    if labels or gpus:
        raise click.UsageError("--label and --gpus: only --address local takes them.")
    try:
        from hybridwatch.orchestration.fleet.ray_cluster import RayCluster
    except ModuleNotFoundError as error:
        raise FleetError(
            f"--address {address}: needs the Python module {error.name!r}: "
            'pip install "hybridwatch[fleet]"'
        ) from error
    say(_OPEN_DOOR, err=True)
    return RayCluster(address)


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise click.UsageError(f"--label: expected KEY=VALUE, found {text!r}.")
    return key, value


def _tell(summary: DriverSummary, *, as_json: bool) -> None:
    ends = {end.value: summary.ends[end] for end in AttemptEnd}
    if as_json:
        print_json({"attempts": ends, "left": dict(summary.left)})
    else:
        say(f"{plural(summary.ends[AttemptEnd.STORED], 'record')} stored")
        if summary.given_up:
            say(f"{plural(summary.given_up, 'job')} given up; see: hybridwatch fleet status")
        for reason, count in sorted(summary.left.items()):
            say(f"{plural(count, 'job')} left: {reason or 'a driver went before their turn'}")
