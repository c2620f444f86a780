"""``hybridwatch serve``: give stored runs to other programs, over HTTP."""

from pathlib import Path

import click

from hybridwatch.api.app import Access, AppState, Limits, make_app
from hybridwatch.api.connections import make_server
from hybridwatch.api.view import StoreView
from hybridwatch.cli.dashboard import takes_hosts, takes_port
from hybridwatch.cli.options import takes_results, verb
from hybridwatch.database.tokens import open_tokens
from hybridwatch.orchestration.nightly.access import is_loopback, read_hosts
from hybridwatch.orchestration.nightly.checkout import checkout_here
from hybridwatch.records.store.layout import require_folder


@verb("serve", "--api", "--api --require-token")
@click.option("--api", is_flag=True, required=True, help="Serve the HTTP API (docs/api.md).")
@takes_results("Folder whose records are served.")
@takes_port(8502)
@click.option("--require-token", is_flag=True, help="Let no one read without a token either.")
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    default=300.0,  # more than a program needs that means well
    show_default=True,
    help="Requests a second of one token, or of one address without; for a moment twice as many.",
)
@takes_hosts("reading needs a token, too.")
def command(
    *,
    api: bool,  # noqa: ARG001
    results: Path,
    port: int,
    require_token: bool,
    rate: float,
    host: str,
    names: tuple[str, ...],
) -> None:
    """Start the API server; it ends with Ctrl-C.

    Runs, verdicts, series and alerts, as the verbs' --json tells them; /openapi.json describes
    every question and answer. Writing needs a token (hybridwatch token make). Needs the
    extra "api", but neither vLLM nor torch.
    """
    require_folder(results)
    if not is_loopback(host):
        click.echo(f"warning: {host}:{port}: tokens pass in the clear: put TLS in front", err=True)
    access = Access(open_tokens(results), reads_need_one=require_token or not is_loopback(host))
    view = StoreView(results, checkout_here)
    view.now()  # what is new is read before anybody waits for it
    click.echo(f"hybridwatch serve: http://{host}:{port}/openapi.json (Ctrl-C ends it)")
    app = make_app(AppState(view, access, Limits(rate)), read_hosts(" ".join((host, *names))).allow)
    make_server(app, host, port).run()
