"""Options of a verb that listens: on which address, and under which names it answers."""

from collections.abc import Callable
from typing import Any, Final

import click

from hybridwatch.orchestration.nightly.access import NAME

_LOOPBACK: Final = "127.0.0.1"


def takes_hosts(otherwise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a verb the arguments ``host`` and ``names``.

    Args:
        otherwise: What holds unless the address is loopback.
    """

    def take(verb: Callable[..., Any]) -> Callable[..., Any]:
        verb = click.option(
            "--allow-host",
            "names",
            multiple=True,
            callback=_checked,
            metavar="NAME",
            help="Also answer under this name, such as that of a proxy in front; may be repeated. "
            "Loopback and --host are always allowed. If --host means every address, so are any "
            "address and this machine's name.",
        )(verb)
        return click.option(
            "--host",
            default=_LOOPBACK,
            show_default=True,
            help=f"Address to listen on. Unless it is loopback, {otherwise}",
        )(verb)

    return take


def _checked(_: click.Context, __: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if not NAME.fullmatch(name):
            raise click.BadParameter(f"expected a name without scheme and port, found {name!r}")
    return names
