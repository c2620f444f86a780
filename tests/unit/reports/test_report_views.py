"""The three forms of a report, in every situation that people meet."""

import io
import json
import re
from dataclasses import replace
from importlib.metadata import version
from math import inf, log1p, nan

import pytest
from rich.console import Console

from hybridwatch.analysis.gate import gate
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Attribution, Factor, Interval, Report, Summary, Verdict
from hybridwatch.analysis.wording.numbers import (
    PAIRED,
    describe_basis,
    describe_change,
    format_centers,
    name_of,
)
from hybridwatch.analysis.wording.report_json import ReportAnswer, comparison_to_json, to_json
from hybridwatch.metrics import EXPLAINING, METRICS, Kind, find_metric
from hybridwatch.reports import sentence
from hybridwatch.reports.escape import as_item, escape, fenced, one_line
from hybridwatch.reports.jsonform import gate_to_json
from hybridwatch.reports.markdown import render_comment
from hybridwatch.reports.table import STYLES, print_table, print_values
from hybridwatch.scenarios.load import find
from tests.builders import BASELINE, Trials, a_comparison, a_run, noisy
from tests.shipped import SCENARIOS
from tests.situations import HOSTILE, SITUATIONS


def table_text(report, width: int) -> str:
    stream = io.StringIO()
    print_table(report, Console(file=stream, width=width, force_terminal=False))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


@pytest.mark.parametrize("situation", SITUATIONS)
def test_comment_reads_as_reviewed(situation, golden) -> None:
    text = render_comment(SITUATIONS[situation]())
    golden.check(f"comment/{situation}.md", text.replace(version("hybridwatch"), "VERSION"))


@pytest.mark.parametrize("situation", SITUATIONS)
def test_table_reads_as_reviewed_at_80_columns(situation, golden) -> None:
    text = table_text(SITUATIONS[situation](), 80)
    assert max(map(len, text.splitlines())) <= 80
    golden.check(f"table/{situation}.txt", text)


EXPECTED = {m for scenario in find(SCENARIOS, ()) for m in scenario.expect.exactly}
SHOWN = sorted({metric.id for metric in METRICS} - set(EXPLAINING) | EXPECTED)


@pytest.mark.parametrize("metric", SHOWN)
def test_no_name_of_a_metric_is_broken_at_80_columns(metric) -> None:
    # Numbers about as wide as they get beside it, which take the room.
    lost = {"accuracy.recall": "1" * 200}, {"accuracy.recall": "0" * 200}
    times = [{"output_throughput": noisy(8123.0, 12, 0.4, seed)} for seed in (1, 2)]
    sides = [{**lost[at], **times[at], metric: _any(metric, at)} for at in (0, 1)]
    text = table_text(build_report(a_run(*sides)), 80)
    assert max(map(len, text.splitlines())) <= 80
    (family, _, member) = metric.partition(".")
    words = set(text.split("\n\n")[1].split())
    assert metric in words or {f"{family}.", member} <= words


@pytest.mark.parametrize("width", [40, 60])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_narrow_terminal_shows_every_name_and_number_whole(situation, width) -> None:
    report = SITUATIONS[situation]()
    text = table_text(report, width)
    assert max(map(len, text.splitlines())) <= width
    words = set(text.replace(",", " ").split())
    for comparison in report.comparisons:
        shown = [*format_centers(comparison), comparison.verdict.value]
        wanted = " ".join([one_line(name_of(comparison)), *shown])
        assert set(wanted.replace(",", " ").split()) <= words


def _any(metric: str, side: int) -> Trials:
    return (
        "1" * (50 - 40 * side) if find_metric(metric).kind is Kind.PROPORTION else (5.0 + side,) * 4
    )


@pytest.mark.parametrize("metric", ["output_throughput", "contract.states_off"])
def test_long_labels_go_by_short_names_and_stand_in_full_once(metric) -> None:
    label = "cpu-0.27.1~all-cache-spec-decode-anchor+prev-step-anchor+conv-anchor+block-end-states"
    healthy = label.replace("~all-cache-spec-decode-anchor", "")
    builds = tuple(replace(BASELINE, label=one) for one in (healthy, label))
    report = build_report(a_run({metric: (1.0,)}, {metric: (2.0,)}, builds=builds))
    text = table_text(report, 200)
    assert "contender: without anchor" in text
    assert text.count(label) == 1
    comment = render_comment(report)
    assert "<code>without anchor</code> (contender)" in comment
    assert comment.count(label) == 1, "in the command that measures again"


def test_table_reads_as_reviewed_at_120_columns(golden) -> None:
    text = table_text(SITUATIONS["regression"](), 120)
    golden.check("table/regression-wide.txt", text)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_json_reads_as_reviewed_and_has_no_nan(situation, golden) -> None:
    text = json.dumps(to_json(SITUATIONS[situation]()), indent=1, allow_nan=False)
    # Digits that hang on the numeric libraries' versions are not what is reviewed.
    golden.check(f"json/{situation}.json", re.sub(r"(\.\d{6})\d+", r"\1", text) + "\n")


@pytest.mark.parametrize("situation", SITUATIONS)
def test_json_read_by_the_client_is_the_same_json_again(situation) -> None:
    told = comparison_to_json(SITUATIONS[situation]())
    assert ReportAnswer.model_validate_json(json.dumps(told)).model_dump(mode="json") == told


def test_json_has_null_where_a_number_is_not_finite() -> None:
    report = SITUATIONS["regression"]()
    odd = replace(
        report.comparisons[0],
        effect=nan,
        baseline=Summary(-inf, (nan, 1.0, inf)),
        interval=Interval(-inf, inf, 0.95),
    )
    (told,) = to_json(replace(report, comparisons=(odd,)))["comparisons"]
    assert told["effect"] is None
    assert told["baseline"] == {"center": None, "n": 3, "values": [None, 1.0, None]}
    assert told["interval"] == {"low": None, "high": None, "confidence": 0.95}


def test_json_of_a_gate() -> None:
    report = SITUATIONS["regression"]()
    answer = gate_to_json(gate(report), report)
    assert answer["passed"] is False
    assert len(answer["reasons"]) == len(report.bad_news)
    assert answer["report"] == {**to_json(report), "causes": answer["report"]["causes"]}
    assert [cause["area"] for cause in answer["report"]["causes"]] == [
        "answers",
        "contract",
        "speed",
    ]


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_doubt_is_shown_in_every_form(situation) -> None:
    report = SITUATIONS[situation]()
    table = " ".join(table_text(report, 400).split())
    comment = render_comment(report)
    for doubt in sentence.notes(report):
        assert " ".join(doubt.split()) in table
        assert escape(doubt) in comment


def test_every_verdict_has_mark_and_colour() -> None:
    assert set(sentence.MARKS) == set(STYLES) == set(Verdict)


def test_a_comment_begins_with_the_verdict_and_ends_in_what_to_do() -> None:
    text = render_comment(SITUATIONS["regression"]())
    assert text.startswith("**Answers were lost: accuracy.recall -10.0 points")
    command = "hybridwatch run smoke/padded-graph-rows --build cpu-0.27.1 --build"
    assert command in text
    assert text.count("- document") == 5
    assert "15 more" in text


def a_factor(name: str, effect: float, share: float, *, moved: bool) -> Factor:
    wide = 0.5 * abs(effect) if moved else 2 * abs(effect) + 0.01
    return Factor(name, effect, Interval(effect - wide, effect + wide, 0.95), share)


@pytest.mark.parametrize(
    ("effects", "moved", "said"),
    [
        (
            (-0.01, -0.11, 0.0),
            {1},
            "fell by 11.9 %: fewer accepted drafts (steps per second -1.0 %",
        ),
        ((-0.1, -0.02, 0.0), {0, 1}, ": fewer steps per second and fewer accepted drafts ("),
        ((0.0, -0.02, 0.2), {1, 2}, ": more requests per step; against it fewer accepted drafts ("),
        ((0.1, 0.0, 0.0), (), "rose by 10.0 %: these trials do not show the cause ("),
    ],
)
def test_the_cause_of_a_change_is_reported_in_every_form(effects, moved, said) -> None:
    steps, length, occupancy = effects
    whole = (1 + steps) * (1 + length) * (1 + occupancy) - 1
    names = ("engine_step_rate", "acceptance_length", "batch_occupancy")
    factors = tuple(
        a_factor(name, effect, log1p(effect) / log1p(whole), moved=at in moved)
        for at, (name, effect) in enumerate(zip(names, effects, strict=True))
    )
    attribution = Attribution("output_throughput", whole, factors)
    report = replace(SITUATIONS["regression"](), attribution=attribution)
    assert said in sentence.reason(attribution)
    assert said in " ".join(table_text(report, 400).split())
    assert escape(said) in render_comment(report)
    told = to_json(report)["attribution"]
    assert told["movers"] == [factor.name for factor in attribution.movers]


def test_hostile_text_is_shown_and_does_nothing() -> None:
    text = render_comment(SITUATIONS["hostile"]())
    fence = re.search(r"^(`{4,})\n(.*)\n\1$", text, re.MULTILINE)
    assert fence is not None, "the fence must be longer than any in the label"
    outside = text.replace(fence[0], "")
    assert outside.count("<details>") == outside.count("</details>") == 5
    prose = re.sub(r"</?(?:code|sub|details|summary)>", "", outside)
    assert "<" not in prose.replace("<wbr>", "")
    assert not re.search(r"(?<!\\)`", prose)
    assert not re.search(r"@\w|#\d|://", prose)
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert not re.search(r"^\s*#", prose, re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b", r"a\|b"),
        ("<b>&", "&lt;b&gt;&amp;"),
        ("line\nline\r\n\tline", "line line line"),
        ("@team", "@\u200bteam"),
        ("www.x", "www<wbr>.x"),
        ("http://x", "http:<wbr>//x"),
        ("a@x", "a@\u200bx"),
        ("run dcc7e0b6", "run dcc7e0<wbr>b6"),
        ("a\x1b[31m\u202e", r"a\\x1b\[31m\\u202e"),
        ("\\`*_[]~", r"\\\`\*\_\[\]\~"),
        ("x" * 301, "x" * 300 + "\u2026"),
    ],
)
def test_escape(text, shown) -> None:
    assert escape(text) == shown


@pytest.mark.parametrize("start", ["- x", "+ x", "1. x", "2) x", "=== "])
def test_items_never_start_another_list(start) -> None:
    assert as_item(start).startswith("- \u200b")


def test_fence_outgrows_its_content() -> None:
    assert fenced("a ``` b ```` c") == "`````\na ``` b ```` c\n`````"


def test_escape_of_the_hostile_text_is_one_line() -> None:
    assert "\n" not in escape(HOSTILE)


def test_values_of_one_build_are_shown_with_their_spread():
    run = a_run({"ttft": [(0.04,), (0.05,), (0.06,)], "accuracy.recall": "1101"})
    stream = io.StringIO()
    print_values(run, Console(file=stream, width=100))
    lines = stream.getvalue().splitlines()
    (ttft,) = [line.split() for line in lines if line.startswith("ttft median")]
    assert ttft == ["ttft", "median", "50.0", "ms", "40.0", "ms", "60.0", "ms", "3"]
    assert any(line.startswith("accuracy.recall") and "75.0 %" in line for line in lines)
    narrow = io.StringIO()
    print_values(run, Console(file=narrow, width=40))
    assert {"ttft median", "  cpu-0.27.1: 50.0 ms"} <= set(
        map(str.rstrip, narrow.getvalue().split("\n"))
    )


def test_a_duet_is_repeated_as_a_duet():
    duet = build_report(
        a_comparison({"duet_cpu_time": noisy(0.004)}, {"duet_cpu_time": noisy(0.004)})
    )
    assert "--phases duet" in sentence.repeat_command(duet)
    other = build_report(a_comparison({"ttft": noisy(0.004)}, {"ttft": noisy(0.004)}))
    assert "--phases" not in sentence.repeat_command(other)


def pairs_against_medians() -> Report:
    """Five of seven pairs are a little faster; the medians of all trials say slower."""
    old = (240.0, 250.0, 255.0, 257.0, 258.0, 270.0, 275.0)
    new = (*(1.003 * value for value in old[:3]), 256.0, 255.0, *(1.003 * v for v in old[5:]))
    return build_report(a_comparison({"output_throughput": old}, {"output_throughput": new}))


def test_a_change_that_is_not_of_the_medians_next_to_it_says_of_what_it_is() -> None:
    report = pairs_against_medians()
    (found,) = report.comparisons
    assert format_centers(found) == ("257 tok/s", "256 tok/s")
    assert found.effect is not None
    assert found.effect > 0
    change = f"+0.3 % {PAIRED}"
    assert describe_change(found).startswith(f"{change} (")
    for text in (render_comment(report), table_text(report, 120)):
        assert f"{change} (" in text
    narrow = table_text(report, 80)
    assert len(PAIRED.split()) <= 4
    assert PAIRED in narrow


def test_a_change_of_the_medians_next_to_it_needs_no_words() -> None:
    (found,) = build_report(
        a_comparison({"ttft": noisy(0.04, 12, 0.001)}, {"ttft": noisy(0.05, 12, 0.001, 2)})
    ).comparisons[:1]
    assert found.ratios
    assert describe_basis(found) == ""
    old, new = found.baseline, found.contender
    assert old is not None
    assert new is not None
    assert found.effect is not None
    other_way = replace(found, effect=-found.effect)
    assert describe_basis(other_way) == PAIRED, "planted"
    assert describe_basis(replace(other_way, ratios=())) == "", "sides as a whole: of medians"


@pytest.mark.parametrize(
    ("needed", "trials", "said"),
    [
        (24, "--trials 24", "about 24 trials a side would settle it."),
        (590, "--trials 10", "590 trials a side would settle it, which takes hours: quieten the"),
        (4000, "--trials 10", "too noisy here for any practical number of trials: quieten the"),
    ],
)
def test_the_command_makes_the_trials_that_are_said_to_settle_it(needed, trials, said) -> None:
    report = SITUATIONS["inconclusive"]()
    found = tuple(
        replace(one, trials_needed=needed) if one.trials_needed else one
        for one in report.comparisons
    )
    report = replace(report, comparisons=found)
    assert sentence.repeat_command(report).endswith(trials)
    text = render_comment(report)
    assert said in text
    assert ("measure both again on a quieter machine, interleaved" in text) is (needed > 100)
