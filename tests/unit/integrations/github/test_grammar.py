"""What a comment can make the bot run: nothing but what the grammar knows."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from hybridwatch.integrations.github import answering, grammar
from hybridwatch.integrations.github.answering import addressed_to_us
from hybridwatch.integrations.github.grammar import (
    Bisect,
    Compare,
    Explain,
    Help,
    Measure,
    Misread,
    Vocabulary,
    arguments,
    build_vocabulary,
    parse,
)
from hybridwatch.orchestration.bisect.question import ChangeDirection
from tests.shipped import ROOT

KNOWN = Vocabulary(
    scenarios=frozenset({"smoke/padded-graph-rows", "smoke/dummy-run"}),
    groups=frozenset({"smoke"}),
    builds=frozenset({"cpu-0.27.1", "cpu-0.32.0"}),
    releases=frozenset({"0.27.1", "0.32.0"}),
    fixes=frozenset({"padded-rows-prefilling", "accepted-counts"}),
    faults=frozenset({"slow-step"}),
    metrics=frozenset({"ttft", "tpot", "contract.wrong_tokens"}),
    searchable=frozenset({"ttft", "tpot", "contract.wrong_tokens", "starts", "alive"}),
    runs=frozenset({"c3a4a83b", "c3a4ffff", "dcc7e0b6"}),
    verdicts=frozenset({"11aa22bb"}),
)
PADDED = "smoke/padded-graph-rows"


@pytest.mark.parametrize(
    ("line", "command", "words"),
    [
        ("", Help(), ""),
        ("help", Help(), ""),
        (f"run {PADDED}", Measure((PADDED,)), f"run {PADDED}"),
        (
            f"run smoke {PADDED} --build cpu-0.27.1 --build cpu-0.27.1+slow-step --trials 20",
            Measure(("smoke", PADDED), ("cpu-0.27.1", "cpu-0.27.1+slow-step"), trials=20),
            f"run smoke {PADDED} --build cpu-0.27.1 --build cpu-0.27.1+slow-step --trials 20",
        ),
        (
            "run smoke --known-bad",
            Measure(("smoke",), known_bad=True),
            "run smoke --known-bad",
        ),
        ("run\tsmoke  smoke ", Measure(("smoke",)), "run smoke"),
        ("compare", Compare(), "compare latest"),
        ("compare c3a4a dcc7", Compare(("c3a4a83b", "dcc7e0b6")), "compare c3a4a83b dcc7e0b6"),
        (
            "bisect smoke/dummy-run --good 0.27.1 --bad cpu-0.32.0",
            Bisect("smoke/dummy-run", "0.27.1", "cpu-0.32.0"),
            (
                "bisect smoke/dummy-run --good 0.27.1 --bad cpu-0.32.0 --find regression "
                "--max-minutes 120"
            ),
        ),
        (
            (
                "bisect smoke/dummy-run --bad 0.27.1 --good 0.32.0 --find fix --metric alive "
                "--max-minutes 30"
            ),
            Bisect("smoke/dummy-run", "0.32.0", "0.27.1", "alive", ChangeDirection.FIX, 30),
            (
                "bisect smoke/dummy-run --good 0.32.0 --bad 0.27.1 --metric alive --find fix "
                "--max-minutes 30"
            ),
        ),
        ("explain", Explain(), "explain latest"),
        ("explain ttft --of 11aa", Explain("ttft", "11aa22bb"), "explain 11aa22bb ttft"),
    ],
)
def test_a_command_becomes_typed_values_and_these_a_list(line, command, words) -> None:
    assert parse(line, KNOWN) == command
    assert " ".join(arguments(command)) == words


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("rnu smoke", "no such command: rnu; did you mean run?"),
        ("run smoke/padded-graph-row", f"no such scenario: {PADDED[:-1]}; did you mean {PADDED}?"),
        ("run", "run: expected a scenario or a group, such as smoke"),
        ("run smoke --trails 9", "no such option: --trails; did you mean --trials?"),
        ("run smoke --trials 6", "--trials: expected 7 to 100, found 6"),
        ("run smoke --trials 1e1", "--trials: expected 7 to 100, found 1e1"),
        ("run smoke --trials 1_0", "--trials: expected 7 to 100, found 1_0"),
        ("run smoke --trials", "--trials: expected a value behind it, found none"),
        ("run smoke --trials 9 --trials 10", "--trials: stands there too often"),
        ("run smoke --known-bad --known-bad", "--known-bad: stands there too often"),
        ("run smoke --build cpu-0.27.1~slow-step", "no such fix: slow-step; ask for help"),
        ("run smoke --build cpu-0.27.1~", "no such fix: ; ask for help"),
        ("run smoke --build ../x", "no such build: ../x; ask for help"),
        ("run smoke --results /tmp", "no such option: --results; ask for help"),
        ("run a b c d e f", "expected at most 5 names, found 6"),
        (
            "run smoke --known-bad --build cpu-0.27.1 --build cpu-0.27.1",
            "--known-bad: expected one --build at the most, found two",
        ),
        ("compare c3a4", "no such run: c3a4; did you mean c3a4ffff?"),
        ("compare c3a", "no such run: c3a; ask for help"),
        ("compare /etc/passwd", "no such run: /etc/passwd; ask for help"),
        ("bisect smoke/dummy-run --good 0.27.1", "bisect: expected a scenario, --good END and "),
        ("bisect smoke --good 0.27.1 --bad 0.32.0", "no such scenario: smoke; ask for help"),
        (
            "bisect smoke/dummy-run --good 0.27.1 --bad HEAD",
            "no such build or release: HEAD; ask for help",
        ),
        ("explain ttfs", "no such metric: ttfs; did you mean ttft?"),
        ("help me", "expected at most 0 names, found 1"),
        ("run smoke; rm -rf /", "no such option: -rf; ask for help"),
        ("run $(id)", "no such scenario: $(id); ask for help"),
        ("run smоke", "expected at most 300 plain characters (ASCII)"),  # noqa: RUF001 (Cyrillic)
        ("run smoke\u200b", "expected at most 300 plain characters (ASCII)"),
        ("run \u202esmoke", "expected at most 300 plain characters (ASCII)"),
        ("run \uff53moke", "expected at most 300 plain characters (ASCII)"),
        (f"run smoke{' ' * 300}", "expected at most 300 plain characters (ASCII)"),
    ],
)
def test_what_is_not_understood_is_one_short_line(line, reason) -> None:
    read = parse(line, KNOWN)
    assert isinstance(read, Misread)
    assert read.reason.startswith(reason)
    assert len(read.reason) < 200
    assert "\n" not in read.reason


def test_every_name_of_this_checkout_can_be_asked_for(monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    known = build_vocabulary(ROOT / "results")
    assert {"smoke", "curated", "gpu", "reported"} <= known.groups
    for scenario in known.scenarios:
        assert parse(f"run {scenario}", known) == Measure((scenario,))
    for build in known.builds:
        assert parse(f"run smoke --build {build}", known) == Measure(("smoke",), (build,))
    assert {"ttft", "contract.wrong_tokens", "accuracy.recall"} <= known.metrics
    assert "accuracy.recall" not in known.searchable


# A mention, as a reader sees it.

SPEAKS = "@hybridwatch run smoke"


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (SPEAKS, ["run smoke"]),
        ("@hybridwatch", [""]),
        ("@HybridWatch\trun smoke ", ["run smoke"]),
        (f"Thanks!\n\n{SPEAKS}\n\nand see", ["run smoke"]),
        (f"Thanks!\r\n{SPEAKS}\r\n", ["run smoke"]),
        (f"{SPEAKS}\n{SPEAKS}", ["run smoke", "run smoke"]),
        (f"> quoted\n\n{SPEAKS}", ["run smoke"]),
        ("@hybridwatch run `smoke`", ["run \0"]),
        ("@hybridwatch run **smoke**", ["run \0smoke\0"]),
        ("@hybridwatch run [smoke](http://x.test)", ["run \0smoke\0"]),
        ("@hybridwatch run ![smoke](http://x.test)", ["run \0"]),
        ("@hybridwatch run sm&#111;ke", ["run sm\0ke"]),
        ("@hybridwatch run smoke\\", ["run smoke\\"]),
        (f"It costs $5 or US$6\n\n{SPEAKS}", ["run smoke"]),
        (f"```\nkill $$\n```\n\n{SPEAKS}", ["run smoke"]),
    ],
)
def test_a_line_of_its_own_speaks_to_the_bot(body, lines) -> None:
    assert addressed_to_us(body) == lines


SILENT = [
    "",
    "hybridwatch run smoke",
    f"please {SPEAKS}",
    f"cc {SPEAKS}",
    "@hybridwatch2 run smoke",
    "@hybridwatch-bot run smoke",
    "@hybridwatch/team run smoke",
    "@hybridwatch: run smoke",
    "@hybridwatch\u200b run smoke",
    "@hybridwatch\u00a0run smoke",
    "@hуbridwatch run smoke",  # noqa: RUF001 (Cyrillic)
    "\uff20hybridwatch run smoke",
    f"\u202e{SPEAKS}",
    f"\ufeff{SPEAKS}",
    f"> {SPEAKS}",
    f"> quoted\n{SPEAKS}",  # goes on with the quote
    f">\n> > {SPEAKS}",
    f"- {SPEAKS}",
    f"- item\n{SPEAKS}",
    f"1. {SPEAKS}",
    f"    {SPEAKS}",
    f"```\n{SPEAKS}\n```",
    f"~~~~ sh\n{SPEAKS}\n```\n",
    f"```\n{SPEAKS}",  # never closed
    f"a `code\n{SPEAKS}\n` span",
    f"# {SPEAKS}",
    f"{SPEAKS}\n===",
    f"| a |\n|---|\n{SPEAKS}",
    f"<!--\n{SPEAKS}\n-->",
    f"<!--\n\n{SPEAKS}\n\n-->",
    f"<details>\n\n{SPEAKS}\n\n</details>",
    f"<blockquote>\n\n{SPEAKS}\n\n</blockquote>",
    f"<pre>\n\n{SPEAKS}\n\n</pre>",
    f"{SPEAKS} <!-- -->",
    "&#64;hybridwatch run smoke",
    "\\@hybridwatch run smoke",
    "@hybrid&#119;atch run smoke",
    "**@hybridwatch** run smoke",
    "[@hybridwatch](http://x.test) run smoke",
    f"$$\n{SPEAKS}\n$$",
    f"$$\n\n{SPEAKS}\n\n$$",
    f"> $$\n\n{SPEAKS}\n\n$$",
    f"$a\n{SPEAKS}\nb$",
    f"$`a\n{SPEAKS}\nb`$",
    f"```math\n{SPEAKS}\n```",
    f"{SPEAKS}{' ' * 65_536}",
    f"{SPEAKS}\n\n{'a ' * 4096}",
]


@pytest.mark.parametrize("body", SILENT)
def test_a_comment_that_speaks_to_nobody_or_to_others_is_passed_over(body) -> None:
    assert addressed_to_us(body) == []


def test_a_parser_that_joins_texts_would_hear_what_was_written_as_an_escape(monkeypatch) -> None:
    """Planted: Markdown as the library reads it by itself."""
    monkeypatch.setattr(answering, "_MARKDOWN", MarkdownIt("commonmark").enable("table"))
    assert addressed_to_us("\\@hybridwatch run smoke") == ["run smoke"]


# Hostile comments.

PIECES = [
    "@hybridwatch", "@hybridwatch2", "run", "compare", "bisect", "explain", "help", "smoke",
    PADDED, "smoke/dummy-run", "cpu-0.27.1", "cpu-0.32.0", "0.27.1", "c3a4a83b", "11aa22bb",
    "latest", "ttft", "--build", "--known-bad", "--trials", "--good", "--bad", "--metric",
    "--find", "--max-minutes", "--of", "--results", "--", "-", "+slow-step", "~accepted-counts",
    "20", "9999999", "fix", "regression", ";", "&&", "|", "$(id)", "`id`", "${IFS}", ">", "<",
    "../../etc/passwd", "/bin/sh", "-c", "\\", "'", '"', "\0", "\x1b[2J", "\u202e", "\u200b",
    "\u2066", "sm\u043eke", "\uff53moke", "%0a", "\\n", "{{", "${{ github.token }}", "<!--",
    "-->", "```", "\n", "\r\n", "\t", " ", "  ", "> ", "    ", "- ", "# ", "*", "~", "=",
    "http://x.test", "@everyone", "x" * 400,
]  # fmt: skip
SOUND = [
    f"@hybridwatch run {PADDED} smoke --build cpu-0.27.1+slow-step --trials 20",
    "@hybridwatch run smoke --known-bad",
    "@hybridwatch compare c3a4a83b dcc7e0b6",
    "@hybridwatch explain ttft --of 11aa22bb",
    (
        "@hybridwatch bisect smoke/dummy-run --good 0.27.1 --bad cpu-0.32.0 --metric alive "
        "--find fix --max-minutes 30"
    ),
]


BY_HAND = [
    *SOUND, "@hybridwatch help", "@hybridwatch run $(id)", "@hybridwatch compare $(id)",
    "@hybridwatch run smoke --build $(id)", "@hybridwatch run smoke --trials $(id)",
]  # fmt: skip
"""What must be among the comments, whatever is drawn."""


def spoiled(sound: str, at: int, piece: str) -> list[str]:
    """A sound command in which one word is another, or has something before or behind it."""
    words = sound.split(" ")
    worse = (piece, f"{piece}{words[at]}", f"{words[at]}{piece}")
    return [" ".join((*words[:at], word, *words[at + 1 :])) for word in worse]


@st.composite
def spoilt(draw: st.DrawFn) -> str:
    sound = draw(st.sampled_from(SOUND))
    at = draw(st.integers(0, sound.count(" ")))
    return draw(st.sampled_from(spoiled(sound, at, draw(st.sampled_from(PIECES)))))


def joined(glue: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(PIECES), max_size=14).map(glue.join)


HOSTILE = st.one_of(
    st.text(max_size=200), joined(""), joined(" ").map("@hybridwatch {}".format), spoilt(), spoilt()
)
OPTIONS = {
    "run", "compare", "bisect", "explain", "--build", "--known-bad", "--trials", "--good", "--bad",
    "--metric", "--find", "--max-minutes",
}  # fmt: skip
NAMES = {
    *KNOWN.scenarios, *KNOWN.groups, *KNOWN.builds, *KNOWN.releases, *KNOWN.searchable,
    *KNOWN.runs, *KNOWN.verdicts, "latest", "fix", "regression",
}  # fmt: skip
LABEL = re.compile(
    r"(cpu-0\.27\.1|cpu-0\.32\.0)(([~+](accepted-counts|padded-rows-prefilling))|(\+slow-step))*"
)


def holds(body: str) -> None:
    """Of a comment, nothing reaches a command line but words that we wrote ourselves."""
    for line in addressed_to_us(body):
        read = parse(line, KNOWN)
        if isinstance(read, Misread):
            assert "\n" not in read.reason
            assert len(read.reason) < 300
            continue
        assert type(read) in {Help, Measure, Compare, Bisect, Explain}
        for word in arguments(read):
            is_number = re.fullmatch("[1-9][0-9]{0,2}", word) is not None
            assert word in OPTIONS or word in NAMES or is_number or LABEL.fullmatch(word), word
        assert len(arguments(read)) < 20


def against(check: Callable[[str], None]) -> None:
    """Try 500 hostile comments, and before them those that must be tried."""
    for body in BY_HAND:
        check(body)
    settings(
        max_examples=500,
        phases=[Phase.generate],  # to make one smaller takes long, and the first one tells enough
        suppress_health_check=list(HealthCheck),
    )(given(HOSTILE)(check))()


def test_500_hostile_comments_run_nothing_that_the_grammar_does_not_know() -> None:
    against(holds)


def test_hostile_comments_reach_the_grammar_and_some_are_commands() -> None:
    """Else the test above would hold nothing."""
    every = [
        body
        for sound in SOUND
        for at in range(sound.count(" ") + 1)
        for piece in PIECES
        for body in spoiled(sound, at, piece)
    ]
    some = [*BY_HAND, *every[:: len(every) // 500]]
    read = [parse(line, KNOWN) for body in some for line in addressed_to_us(body)]
    kinds = {type(one) for one in read}
    assert kinds >= {Misread, Help, Measure, Bisect}
    assert len(read) > 100


@pytest.mark.parametrize("name", ["_require_one", "_id", "_label", "_number"])
def test_a_reader_that_lets_words_through_would_be_seen(monkeypatch, name) -> None:
    """Planted, one at a time: values that go on as somebody wrote them, shell and all."""
    careful = grammar._require_one

    def careless(word: str, *known: Any) -> str:
        return careful(word, *known) if known[0] == "command" else word

    monkeypatch.setattr(grammar, name, careless)
    with pytest.raises(AssertionError):
        against(holds)
