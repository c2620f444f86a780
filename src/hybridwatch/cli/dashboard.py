"""``hybridwatch dashboard``: look at the records in a browser."""

import importlib.util
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import click

from hybridwatch.cli.allowed_hosts import takes_hosts
from hybridwatch.cli.options import ResultsFolder, default_results, examples
from hybridwatch.errors import BuildError, HybridwatchError
from hybridwatch.orchestration.nightly.access import (
    HOSTS,
    LOGIN,
    PASSWORD,
    NightlyAccess,
    is_loopback,
    read_access,
)
from hybridwatch.system.home import HOME_VARIABLE, home, shipped

_PORT: Final = 8501
_LOOPBACK: Final = "127.0.0.1"
_SERVER: Final = "server.py"
"""Beside the app: what serves it."""


class DashboardError(HybridwatchError):
    """The dashboard cannot be started."""


@click.command(
    name="dashboard",
    epilog=examples(
        "hybridwatch dashboard",
        "hybridwatch dashboard --results /srv/hybridwatch --port 8600",
    ),
)
@click.option(
    "--results",
    type=ResultsFolder(),
    default=default_results,
    show_default="results, of the home if there is one",
    help="Folder whose records are shown.",
)
@click.option(
    "--port", type=click.IntRange(1, 65535), default=_PORT, show_default=True, help="TCP port."
)
@takes_hosts(
    "everyone who can reach it sees the records, "
    f"except where {PASSWORD} or a login is set (docs/dashboard.md, 'Who may look')."
)
def command(results: Path, port: int, host: str, names: tuple[str, ...]) -> None:
    """Show the records in a browser until Ctrl-C.

    The pages show what regressed, since which build and on which machine, with every raw value and
    the command that measures it again. Needs the extra "dashboard", but neither vLLM nor torch.
    """
    app = shipped() / "dashboard" / "app.py"
    if importlib.util.find_spec("streamlit") is None:
        raise DashboardError(
            "streamlit is not installed in this environment: pip install 'hybridwatch[dashboard]'"
        )
    if not results.is_dir():
        raise DashboardError(
            f"--results {results}: expected a folder, found "
            f"{'a file' if results.exists() else 'nothing'}; `make run` makes the first records"
        )
    access = read_access(app.parent, Path.home(), os.environ)
    if not is_loopback(host) and access == NightlyAccess(password=False, login=False):
        click.echo(
            f"warning: everyone who can reach {host}:{port} sees every record and can answer "
            f"alerts. Set {PASSWORD} or a login (docs/dashboard.md, 'Who may look'), "
            f"or stay on {_LOOPBACK}.",
            err=True,
        )
    click.echo(f"hybridwatch dashboard: http://{host}:{port} (Ctrl-C ends it)")
    start(app, results.resolve(), port, (host, *names), access)


def start(
    app: Path, results: Path, port: int, hosts: tuple[str, ...], access: NightlyAccess
) -> None:
    """Become the Streamlit server; does not return.

    Args:
        app: The entry file; its folder holds the theme.
        results: Absolute path of the results folder.
        port: TCP port.
        hosts: Address to listen on, then further names under which to answer.
        access: What stands between it and its readers.
    """
    words = [sys.executable, "-m", "streamlit", "run", _SERVER]
    options = {
        "server.address": hosts[0],
        "server.port": str(port),
        "server.headless": "true",
        "browser.gatherUsageStats": "false",
    }
    words += [f"--{name}={value}" for name, value in options.items()]
    variables = {
        "HYBRIDWATCH_RESULTS": str(results),
        LOGIN: str(int(access.login)),
        HOSTS: " ".join(hosts),
    }
    with suppress(BuildError):
        # The server runs in the folder of the app, from where it would find another home.
        variables[HOME_VARIABLE] = str(home())
    os.chdir(app.parent)
    # Replacing this process lets Ctrl-C and a supervisor's signals reach the server itself.
    os.execve(sys.executable, words, {**os.environ, **variables})  # noqa: S606
