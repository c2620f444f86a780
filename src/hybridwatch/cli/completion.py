"""What a shell offers for words that name scenarios, builds, runs and verdicts.

It asks at every TAB, so only names are read. What cannot be read is offered nothing: an error would
land in the line that is being typed.
"""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem

from hybridwatch.cli.options import default_results
from hybridwatch.errors import HybridwatchError

_RUNS: Final = 40
"""As many runs as are offered, the newest."""


def scenarios(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Offer ids and groups of scenarios."""
    from hybridwatch.scenarios.load import files_by_id
    from hybridwatch.system.home import home_or_shipped

    try:
        ids = list(files_by_id(home_or_shipped() / "scenarios"))
    except HybridwatchError:
        return []
    groups = {name.partition("/")[0] for name in ids}
    return _fitting(incomplete, [*sorted(groups), *sorted(ids)])


def builds(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Offer builds; behind ``~`` or ``+`` the fixes and faults that can be switched."""
    from hybridwatch.engines.builds import SHIPPED_NAMES, build_files, load_label_names
    from hybridwatch.system.home import home_or_shipped

    if begun := re.match(r".*[~+]", incomplete):
        try:
            words = load_label_names()
        except HybridwatchError:
            words = SHIPPED_NAMES
        switched = words.fixes if begun[0].endswith("~") else words.all
        return _fitting(incomplete, [begun[0] + word for word in switched])
    try:
        files = build_files(home_or_shipped()).values()
        texts = [file.read_text(encoding="utf-8") for file in files]
        names = [name for text in texts for name in tomllib.loads(text).get("builds", {})]
        return _fitting(incomplete, names)
    except (HybridwatchError, OSError, ValueError):
        return []


def records(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the newest runs by their ids."""
    from hybridwatch.records.store import list_records
    from hybridwatch.records.store.layout import read_run_id

    found = reversed(list_records(_results(ctx))[-_RUNS:])
    return _items(incomplete, {read_run_id(path): path.stem for path in found})


def verdicts(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the newest stored verdicts by the last words of their names."""
    from hybridwatch.records.store import list_verdicts

    found = reversed(list_verdicts(_results(ctx))[-_RUNS:])
    return _items(incomplete, {path.stem.rpartition("-")[2]: path.stem for path in found})


def _results(ctx: click.Context) -> Path:
    return Path(ctx.params.get("results") or default_results())


def _items(incomplete: str, descriptions: dict[str, str]) -> list[CompletionItem]:
    offered = {"latest": "", **descriptions}
    return [CompletionItem(key, help=offered[key]) for key in _fitting(incomplete, offered)]


def _fitting(incomplete: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]
