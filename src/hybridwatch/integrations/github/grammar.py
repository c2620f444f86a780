"""The grammar of commands in comments on pull requests, parsed into typed values.

Nothing of a comment goes on as text: a value is an element of the vocabulary (what exists on the
default branch and in the results folder), a label put together of such elements, or a number within
bounds. ``docs/pull-request-commands.md`` is for people.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Final, TypeAlias

from hybridwatch.engines.builds import load_builds, load_label_names
from hybridwatch.metrics import Kind, find_metric, list_metrics
from hybridwatch.orchestration.bisect.question import ALIVE, STARTS, ChangeDirection
from hybridwatch.records.store import list_records, list_verdicts
from hybridwatch.records.store.layout import read_run_id
from hybridwatch.scenarios.load import survey
from hybridwatch.system.home import home


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Every name that there is; ``searchable`` is what a search can look for."""

    scenarios: frozenset[str]
    groups: frozenset[str]
    builds: frozenset[str]
    releases: frozenset[str]
    fixes: frozenset[str]
    faults: frozenset[str]
    metrics: frozenset[str]
    searchable: frozenset[str]
    runs: frozenset[str]
    verdicts: frozenset[str]


def build_vocabulary(results: Path) -> Vocabulary:
    """Read what there is; a file that names something and cannot be read is an error."""
    scenarios = survey(home() / "scenarios").scenarios
    expected = {name for one in scenarios for name in (*one.expect.exactly, *one.expect.at_least)}
    metrics = {*map(find_metric, expected), *list_metrics()}
    specs = load_builds()
    words = load_label_names()
    searched = {metric.id for metric in metrics if metric.kind is not Kind.PROPORTION}
    return Vocabulary(
        scenarios=frozenset(one.id for one in scenarios),
        groups=frozenset(one.id.partition("/")[0] for one in scenarios),
        builds=frozenset(specs),
        releases=frozenset(spec.release for spec in specs.values()),
        fixes=frozenset(words.fixes),
        faults=frozenset(words.added),
        metrics=frozenset(metric.id for metric in metrics),
        searchable=frozenset(searched | {STARTS, ALIVE}),
        runs=frozenset(map(read_run_id, list_records(results))),
        verdicts=frozenset(map(read_run_id, list_verdicts(results))),
    )


MOST_SCENARIOS: Final = 5
TRIALS: Final = range(7, 101)
MINUTES: Final = range(1, 241)
LATEST: Final = "latest"

_LONGEST_LINE: Final = 300
_LONGEST_SHOWN: Final = 40
_LEAST_OF_ID: Final = 4
_PAIR: Final = 2
_PLAIN: Final = re.compile(r"[\x20-\x7e\t]*")
_SWITCH: Final = re.compile(r"([~+])([^~+]*)")
_NEAR: Final = 0.6
_MINUTES_UNASKED: Final = 120
_WAYS: Final = tuple(way.value for way in ChangeDirection)
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


@dataclass(frozen=True, slots=True)
class Help:
    """``help``: lists the commands."""


@dataclass(frozen=True, slots=True)
class Measure:
    """``run``: measure scenarios or groups; no ``builds`` are those compared by default."""

    scenarios: tuple[str, ...]
    builds: tuple[str, ...] = ()
    known_bad: bool = False
    trials: int | None = None


@dataclass(frozen=True, slots=True)
class Compare:
    """``compare``: the verdicts of one run, or of two against each other."""

    runs: tuple[str, ...] = (LATEST,)


@dataclass(frozen=True, slots=True)
class Bisect:
    """``bisect``: which release changed a metric, or any; it ends within ``minutes``."""

    scenario: str
    good: str
    bad: str
    metric: str | None = None
    find: ChangeDirection = ChangeDirection.REGRESSION
    minutes: int = _MINUTES_UNASKED


@dataclass(frozen=True, slots=True)
class Explain:
    """``explain``: the steps to a stored verdict, or to its verdict on one metric."""

    metric: str | None = None
    verdict: str = LATEST


Command: TypeAlias = Help | Measure | Compare | Bisect | Explain
"""Any command."""


@dataclass(frozen=True, slots=True)
class Misread:
    """What was not understood, in one short line; it may hold a word of the comment."""

    reason: str


class _MisreadError(Exception):
    """Ends the reading of a line."""


def parse(line: str, vocabulary: Vocabulary) -> Command | Misread:
    """Read what stands behind the bot's name in a line, which may be anything."""
    if len(line) > _LONGEST_LINE or not _PLAIN.fullmatch(line):
        return Misread(f"expected at most {_LONGEST_LINE} plain characters (ASCII)")
    verb, *words = line.split() or ["help"]
    try:
        return _VERBS[_require_one(verb, "command", _VERBS)](words, vocabulary)
    except _MisreadError as wrong:
        return Misread(str(wrong))


def arguments(command: Command) -> list[str]:
    """Give the command line of a command, without program and results folder; none for help."""
    match command:
        case Help():
            return []
        case Measure():
            builds = [word for label in command.builds for word in ("--build", label)]
            known_bad = ["--known-bad"] * command.known_bad
            return ["run", *command.scenarios, *builds, *known_bad, *_given(trials=command.trials)]
        case Compare():
            return ["compare", *command.runs]
        case Bisect():
            ends = _given(good=command.good, bad=command.bad, metric=command.metric)
            rest = {"find": command.find.value, "max_minutes": command.minutes}
            return ["bisect", command.scenario, *ends, *_given(**rest)]
        case Explain():
            return ["explain", command.verdict, *filter(None, [command.metric])]


def _given(**options: str | int | None) -> list[str]:
    given = {name: value for name, value in options.items() if value is not None}
    return [
        word
        for name, value in given.items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]


def _help(words: Sequence[str], vocabulary: Vocabulary) -> Help:
    del vocabulary
    _sort(words, {}, most=0)
    return Help()


def _measure(words: Sequence[str], vocabulary: Vocabulary) -> Measure:
    options = {"--build": _PAIR, "--trials": 1}
    named, given = _sort(words, options, most=MOST_SCENARIOS, flags={"--known-bad"})
    known = vocabulary.scenarios | vocabulary.groups
    scenarios = tuple(_require_one(word, "scenario", known) for word in named)
    builds = tuple(_label(word, vocabulary) for word in given["--build"])
    known_bad = bool(given["--known-bad"])
    if not scenarios:
        raise _MisreadError("run: expected a scenario or a group, such as smoke")
    if known_bad and len(builds) == _PAIR:
        raise _MisreadError("--known-bad: expected one --build at the most, found two")
    trials = [_number(word, "--trials", TRIALS) for word in given["--trials"]]
    return Measure(tuple(dict.fromkeys(scenarios)), builds, known_bad, *trials)


def _compare(words: Sequence[str], vocabulary: Vocabulary) -> Compare:
    named, _ = _sort(words, {}, most=_PAIR)
    return Compare(tuple(_id(word, "run", vocabulary.runs) for word in named) or (LATEST,))


def _bisect(words: Sequence[str], vocabulary: Vocabulary) -> Bisect:
    single = ("--good", "--bad", "--metric", "--find", "--max-minutes")
    named, given = _sort(words, dict.fromkeys(single, 1), most=1)
    if not (named and given["--good"] and given["--bad"]):
        raise _MisreadError("bisect: expected a scenario, --good END and --bad END")
    ends = vocabulary.builds | vocabulary.releases
    found = Bisect(
        _require_one(named[0], "scenario", vocabulary.scenarios),
        _require_one(given["--good"][0], "build or release", ends),
        _require_one(given["--bad"][0], "build or release", ends),
    )
    for word in given["--metric"]:
        found = replace(found, metric=_require_one(word, "metric", vocabulary.searchable))
    for word in given["--find"]:
        found = replace(found, find=ChangeDirection(_require_one(word, "--find", _WAYS)))
    for word in given["--max-minutes"]:
        found = replace(found, minutes=_number(word, "--max-minutes", MINUTES))
    return found


def _explain(words: Sequence[str], vocabulary: Vocabulary) -> Explain:
    named, given = _sort(words, {"--of": 1}, most=1)
    found = Explain()
    for word in named:
        found = replace(found, metric=_require_one(word, "metric", vocabulary.metrics))
    for word in given["--of"]:
        found = replace(found, verdict=_id(word, "verdict", vocabulary.verdicts))
    return found


_VERBS: Final[Mapping[str, Callable[[Sequence[str], Vocabulary], Command]]] = {
    "run": _measure,
    "compare": _compare,
    "bisect": _bisect,
    "explain": _explain,
    "help": _help,
}


def _sort(
    words: Sequence[str],
    options: Mapping[str, int],
    *,
    most: int,
    flags: Collection[str] = frozenset(),
) -> tuple[list[str], dict[str, list[str]]]:
    """Distinguish names from options, by how often each may stand there, and from flags."""
    named: list[str] = []
    given: dict[str, list[str]] = {option: [] for option in (*options, *flags)}
    waiting = iter(words)
    for word in waiting:
        if not word.startswith("-"):
            named.append(word)
            continue
        if word not in given:
            raise _MisreadError(_unknown(word, "option", given))
        value = word if word in flags else next(waiting, "")
        given[word].append(value)
        if not value:
            raise _MisreadError(f"{word}: expected a value behind it, found none")
        if len(given[word]) > options.get(word, 1):
            raise _MisreadError(f"{word}: stands there too often")
    if len(named) > most:
        raise _MisreadError(f"expected at most {most} names, found {len(named)}")
    return named, given


def _require_one(word: str, what: str, known: Collection[str]) -> str:
    if word not in known:
        raise _MisreadError(_unknown(word, what, known))
    return word


def _id(word: str, what: str, known: Collection[str]) -> str:
    if word == LATEST:
        return LATEST
    found = [one for one in known if one.startswith(word)] if len(word) >= _LEAST_OF_ID else []
    if len(found) != 1:
        raise _MisreadError(_unknown(word, what, known))
    return found[0]


def _label(word: str, vocabulary: Vocabulary) -> str:
    start = min((word.find(mark) for mark in "~+" if mark in word), default=len(word))
    name = _require_one(word[:start], "build", vocabulary.builds)
    switches = {}
    for mark, switch in _SWITCH.findall(word[start:]):
        known = vocabulary.fixes if mark == "~" else vocabulary.fixes | vocabulary.faults
        switches[_require_one(switch, "fix", known)] = mark
    return name + "".join(f"{mark}{switch}" for switch, mark in switches.items())


def _number(word: str, option: str, bounds: range) -> int:
    # int() reads other digits, signs and underscores as well
    if not re.fullmatch("[0-9]{1,4}", word) or int(word) not in bounds:
        shown = word[:_LONGEST_SHOWN]
        raise _MisreadError(f"{option}: expected {bounds[0]} to {bounds[-1]}, found {shown}")
    return int(word)


def _unknown(word: str, what: str, known: Collection[str]) -> str:
    near = get_close_matches(word, sorted(known), n=1, cutoff=_NEAR)
    hint = f"did you mean {near[0]}?" if near else "ask for help to see what there is"
    return f"no such {what}: {word[:_LONGEST_SHOWN]}; {hint}"
