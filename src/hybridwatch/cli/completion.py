"""What a shell offers for words that name scenarios, builds, runs and verdicts.

A shell asks at every TAB, so names are read off files' names and the builds' own file alone, and
whatever cannot be read is offered nothing: an error would land in the line that somebody is typing.
"""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem

from hybridwatch.cli.options import DEFAULT_RESULTS
from hybridwatch.errors import HybridwatchError
from hybridwatch.scenario.fixes import FIXES

_RUNS: Final = 40
"""As many runs as are offered, the newest."""
_LATEST: Final = "latest"


def scenarios(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Offer ids and groups of scenarios."""
    from hybridwatch.engine.builds import home

    try:
        root = home() / "scenarios"
    except HybridwatchError:
        return []
    ids = [path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.toml")]
    groups = {name.partition("/")[0] for name in ids}
    return _fitting(incomplete, [*sorted(groups), *sorted(ids)])


def builds(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Offer builds; behind ``~`` or ``+`` the fixes and faults that can be switched."""
    from hybridwatch.engine.builds import FAULTS, home

    if begun := re.match(r".*[~+]", incomplete):
        words = FIXES if begun[0].endswith("~") else (*FIXES, *FAULTS)
        return _fitting(incomplete, [begun[0] + word for word in words])
    try:
        content = (home() / "engine" / "builds.toml").read_text(encoding="utf-8")
        return _fitting(incomplete, tomllib.loads(content).get("builds", {}))
    except (HybridwatchError, OSError, ValueError):
        return []


def records(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the newest runs by their ids."""
    from hybridwatch.store import list_records
    from hybridwatch.store.layout import run_id_of

    found = reversed(list_records(_results(ctx))[-_RUNS:])
    return _items(incomplete, {_LATEST: "", **{run_id_of(path): path.stem for path in found}})


def verdicts(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the newest stored verdicts by the last words of their names."""
    from hybridwatch.store import list_verdicts

    found = reversed(list_verdicts(_results(ctx))[-_RUNS:])
    keys = {path.stem.rpartition("-")[2]: path.stem for path in found}
    return _items(incomplete, {_LATEST: "", **keys})


def _results(ctx: click.Context) -> Path:
    return Path(ctx.params.get("results") or DEFAULT_RESULTS)


def _items(incomplete: str, descriptions: dict[str, str]) -> list[CompletionItem]:
    return [
        CompletionItem(key, help=text)
        for key, text in descriptions.items()
        if key.startswith(incomplete)
    ]


def _fitting(incomplete: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]
