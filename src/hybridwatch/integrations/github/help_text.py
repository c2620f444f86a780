"""What the bot says when somebody asks for help."""

from typing import Final

from hybridwatch.integrations.github.grammar import MINUTES, MOST_SCENARIOS, TRIALS

GRAMMAR: Final = f"""\
@hybridwatch help
@hybridwatch run SCENARIO... [--build BUILD [--build BUILD]] [--known-bad] [--trials N]
@hybridwatch compare [RUN [RUN]]
@hybridwatch bisect SCENARIO --good END --bad END [--metric METRIC] [--find regression|fix]
                    [--max-minutes N]
@hybridwatch explain [METRIC] [--of VERDICT]

SCENARIO  an id or a group, {MOST_SCENARIOS} at the most; bisect takes an id
BUILD     an engine build, with fixes and faults switched by ~ and +
END       an engine build, or the release of one
RUN       the beginning of a run's id, or latest
VERDICT   the beginning of a verdict's id, or latest
N         {TRIALS[0]} to {TRIALS[-1]} trials, {MINUTES[0]} to {MINUTES[-1]} minutes
"""
"""The grammar, as ``docs/pull-request-commands.md`` has it too."""

HELP: Final = f"One command a comment, on a line of its own:\n\n```\n{GRAMMAR}```"
