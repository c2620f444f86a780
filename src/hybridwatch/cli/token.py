"""``hybridwatch token``: which programs may ask the API for what."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.text import Text

from hybridwatch.cli.options import (
    print_json,
    takes_json,
    takes_results,
    verb,
    verb_group,
)
from hybridwatch.cli.terminal import Console
from hybridwatch.database.tokens import Scope, Token, open_tokens
from hybridwatch.records.store.layout import require_folder
from hybridwatch.reports.stacked import StackedTable


@verb_group("token", "make ci --scope ingest")
def command() -> None:
    """Manage tokens of the HTTP API (docs/api.md)."""


@verb("make", "grafana --scope read", "ci --scope read --scope ingest --days 90", of=command)
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice([scope.value for scope in Scope]),
    multiple=True,
    required=True,
    help="What it allows; may be repeated.",
)
@click.option("--days", type=click.IntRange(1, 3660), help="For how long; without, for ever.")
@takes_results("Folder whose API takes the token.")
def make(*, name: str, scopes: tuple[str, ...], days: int | None, results: Path) -> None:
    """Create a token for NAME and print it, once.

    Whatever is done with it is done under this name. The database keeps a digest, so a token that
    is lost is made again, under another name.
    """
    require_folder(results)
    now = datetime.now(UTC)
    expires_at = None if days is None else now + timedelta(days=days)
    click.echo(open_tokens(results).make(name, {*map(Scope, scopes)}, now, expires_at))
    click.echo("Keep it: it is not shown again.", err=True)


@verb("list", "--json", of=command)
@takes_results("Folder whose API takes the tokens.")
@takes_json()
def list_all(*, results: Path, as_json: bool) -> None:
    """List the tokens, expired and revoked ones too."""
    require_folder(results)
    now, found = datetime.now(UTC), open_tokens(results).by_digest().values()
    if as_json:
        print_json({"schema_version": 1, "tokens": [_to_json(one, now) for one in found]})
        return
    table = StackedTable("name", "scopes", "made", "used", "stands", box=box.SIMPLE_HEAD)
    for one in found:
        scopes = ", ".join(sorted(scope.value for scope in one.scopes))
        days = _day(one.made_at), _day(one.used_at)
        table.add_row(Text(one.name), scopes, *days, _stands(one, now))
    Console().print(table)


@verb("revoke", "ci", of=command)
@click.argument("name")
@takes_results("Folder whose API takes the token.")
def revoke(*, name: str, results: Path) -> None:
    """Revoke the token of NAME; a running server refuses it within two seconds."""
    require_folder(results)
    open_tokens(results).revoke(name, datetime.now(UTC))
    click.echo(f"{name}: revoked")


def _to_json(token: Token, now: datetime) -> dict[str, Any]:
    times = ("made_at", "expires_at", "revoked_at", "used_at")
    return {
        "name": token.name,
        "scopes": sorted(scope.value for scope in token.scopes),
        "valid": token.is_valid(now),
        **{name: time and time.isoformat() for name in times for time in [getattr(token, name)]},
    }


def _stands(token: Token, now: datetime) -> str:
    if token.revoked_at is not None:
        return f"revoked {_day(token.revoked_at)}"
    if token.expires_at is None:
        return "valid"
    return f"{'valid until' if token.is_valid(now) else 'expired'} {_day(token.expires_at)}"


def _day(time: datetime | None) -> str:
    return f"{time:%Y-%m-%d}" if time else "never"
