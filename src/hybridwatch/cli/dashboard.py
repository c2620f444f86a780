"""``hybridwatch dashboard``: look at the records in a browser."""

import importlib.util
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import click

from hybridwatch.cli.options import VerbOption, takes_results, verb
from hybridwatch.errors import BuildError, HybridwatchError
from hybridwatch.orchestration.nightly.access import (
    HOSTS,
    LOGIN,
    NAME,
    PASSWORD,
    NightlyAccess,
    is_loopback,
    read_access,
)
from hybridwatch.system.home import HOME_VARIABLE, home, shipped
from hybridwatch.system.python_command import python_command

_LOOPBACK: Final = "127.0.0.1"


def takes_port(default: int) -> VerbOption:
    """Give a verb the argument ``port``."""
    kind = click.IntRange(1, 65535)
    return click.option("--port", type=kind, default=default, show_default=True, help="TCP port.")


def takes_hosts(otherwise: str) -> VerbOption:
    """Give a verb the arguments ``host`` and ``names``; ``otherwise`` holds beyond loopback."""
    host = click.option(
        "--host",
        default=_LOOPBACK,
        show_default=True,
        help=f"Address to listen on. Unless it is loopback, {otherwise}",
    )
    names = click.option(
        "--allow-host",
        "names",
        multiple=True,
        callback=_checked,
        metavar="NAME",
        help="Also answer under this name, such as that of a proxy in front; may be repeated. "
        "Loopback and --host are always allowed. If --host means every address, so are any "
        "address and this machine's name.",
    )
    return lambda verb: host(names(verb))


def _checked(_: click.Context, __: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if not NAME.fullmatch(name):
            raise click.BadParameter(f"expected a name without scheme and port, found {name!r}")
    return names


class DashboardError(HybridwatchError):
    """The dashboard cannot be started."""


@verb("dashboard", "", "--results /srv/hybridwatch --port 8600")
@takes_results("Folder whose records are shown.")
@takes_port(8501)
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

    The folder of ``app`` has server.py, which serves it. ``hosts`` are an address to listen on, and
    further names under which to answer.
    """
    words = [*python_command("-m", "streamlit", "run", "server.py")]
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
