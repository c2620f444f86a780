"""The records and sides that a verb takes as arguments."""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import click

from hybridwatch.cli import completion
from hybridwatch.cli.options import takes_results
from hybridwatch.history.judge import PINNED, SideOptions
from hybridwatch.system.console_text import say

RECORDS_HELP: Final = """RECORD is a record file, the id of a run, or "latest"; ids and "latest" are
looked up in the results folder.
One RECORD with two builds compares these two. Two RECORDs are BASELINE and CONTENDER; for a record
with two builds add the side: RECORD#0 or RECORD#1. One RECORD with one build, or one side, is
compared with the baseline that results/baselines.toml pins for its scenario and testbed; where none
is pinned, only what its scenario expects is judged: contracts and answers."""

MANY_HELP: Final = """Without RECORD, the newest record of every scenario, testbed and pair of
builds in the folder is judged; a record of one build is compared with the pinned baseline, and
without one held against what its scenario expects. A scenario that the policy expects is missing if
it has no record, or only one older than max_age_days."""


ANY_TESTBEDS: Final = SideOptions(announce=functools.partial(say, err=True))
"""For verbs without ``takes_baseline``: both sides are shown, whichever machines measured them."""


def takes_baseline(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the argument ``options``; it refuses to compare testbeds by itself."""

    @functools.wraps(verb)
    def wrapped(*, baseline: str | None, across_testbeds: bool, **others: Any) -> Any:
        options = replace(
            ANY_TESTBEDS, pinned=baseline is not None, across_testbeds=across_testbeds
        )
        return verb(options=options, **others)

    wrapped = click.option(
        "--across-testbeds",
        is_flag=True,
        help="Compare sides even if different machines measured them.",
    )(wrapped)
    return click.option(
        "--baseline",
        type=click.Choice([PINNED]),
        help="Compare with the pinned baseline, even if the record holds two builds.",
    )(wrapped)


def takes_records(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the arguments ``records`` and ``results``."""
    return _takes_records(verb, "RECORD [RECORD]", required=True)


def may_take_records(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the arguments ``records``, which may be empty, and ``results``."""
    return _takes_records(verb, "[RECORD [RECORD]]", required=False)


def _takes_records(verb: Callable[..., Any], metavar: str, *, required: bool) -> Callable[..., Any]:
    verb = takes_results("Folder in which run ids are looked up.")(verb)
    return click.argument(
        "records",
        nargs=-1,
        required=required,
        metavar=metavar,
        shell_complete=completion.records,
    )(verb)
