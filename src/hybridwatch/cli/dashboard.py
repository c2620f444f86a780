"""``hybridwatch dashboard``: look at the records in a browser."""

import importlib.util
import os
import sys
from pathlib import Path
from typing import Final

import click

from hybridwatch.errors import HybridwatchError

_CHECKOUT: Final = Path(__file__).resolve().parents[3]
_PORT: Final = 8501
_LOOPBACK: Final = "127.0.0.1"


class DashboardError(HybridwatchError):
    """The dashboard cannot be started."""


@click.command(name="dashboard")
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Folder whose records are shown.",
)
@click.option(
    "--port", type=click.IntRange(1, 65535), default=_PORT, show_default=True, help="TCP port."
)
@click.option(
    "--host",
    default=_LOOPBACK,
    show_default=True,
    help="Address to listen on. There is no login: another address shows the records to "
    "everyone who can reach it.",
)
def command(results: Path, port: int, host: str) -> None:
    """Show the records in a browser, until Ctrl-C.

    What regressed, since which build, on which machine, with every raw value and the command that
    repeats it. Needs the dashboard extra, but neither vLLM nor torch.
    """
    app = find_app(_CHECKOUT)
    if importlib.util.find_spec("streamlit") is None:
        raise DashboardError(
            "streamlit is not installed in this environment: pip install 'hybridwatch[dashboard]'"
        )
    if not results.is_dir():
        raise DashboardError(
            f"--results {results}: expected a folder, found "
            f"{'a file' if results.exists() else 'nothing'}; `make run` makes the first records"
        )
    click.echo(f"hybridwatch dashboard: http://{host}:{port} (Ctrl-C ends it)")
    start(app, results.resolve(), port, host)


def find_app(checkout: Path) -> Path:
    """Find the dashboard's entry file.

    Args:
        checkout: The root of the source tree.

    Returns:
        Its path.

    Raises:
        DashboardError: hybridwatch was installed without its checkout.
    """
    app = checkout / "dashboard" / "app.py"
    if not app.is_file():
        raise DashboardError(
            f"{app}: not found; the dashboard is started from a checkout of hybridwatch "
            "(pip install -e '.[dashboard]')"
        )
    return app


def start(app: Path, results: Path, port: int, host: str) -> None:
    """Become the Streamlit server; does not return.

    Args:
        app: The entry file; its folder holds the theme.
        results: Absolute path of the results folder.
        port: TCP port.
        host: Address to listen on.
    """
    words = [sys.executable, "-m", "streamlit", "run", app.name]
    options = {
        "server.address": host,
        "server.port": str(port),
        "server.headless": "true",
        "browser.gatherUsageStats": "false",
    }
    words += [f"--{name}={value}" for name, value in options.items()]
    os.chdir(app.parent)
    # Replacing this process lets Ctrl-C and a supervisor's signals reach the server itself.
    os.execve(sys.executable, words, {**os.environ, "HYBRIDWATCH_RESULTS": str(results)})  # noqa: S606
