"""What is said of two curves, on every page and in every comment, and as JSON."""

import io
import json

from rich.console import Console

from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.wording.report_json import ReportAnswer, comparison_to_json
from hybridwatch.reports.markdown import render_comment
from hybridwatch.reports.table import print_table
from hybridwatch.reports.tradeoff_text import tradeoff_lines
from tests.builders import a_comparison
from tests.curves import a_swept_run, even, slower, tilted, tradeoff_in

PLAIN = build_report(a_comparison({"ttft": (1.0,)}, {"ttft": (1.0,)}))


def lines_of(*sides, **more):
    return tradeoff_lines(tradeoff_in(build_report(a_swept_run(*sides, **{"noise": 0.0, **more}))))


def test_where_two_curves_cross_is_said_with_who_is_above_on_either_side():
    where, *_ = lines_of(even, tilted)
    assert where == (
        "The curves cross between 59 and 60.8 tok/s per user: the baseline is above from 41.7 to "
        "59, the contender is above from 60.8 to 100."
    )


def test_curves_of_which_one_is_above_everywhere():
    where, *_ = lines_of(even, slower(0.06))
    assert where == (
        "Compared from 41.7 to 94.3 tok/s per user, and nowhere do the curves cross: "
        "the baseline is above from 41.7 to 94.3."
    )


def test_curves_that_are_alike_or_far_apart():
    assert lines_of(even, even)[0] == (
        "Neither curve is shown to be above the other anywhere from 41.7 to 100 tok/s per user."
    )
    assert lines_of(even, slower(9.0))[0].startswith("The curves share no interactivity")


def test_goodput_and_energy_are_said_only_where_they_are_known():
    goodput, energy = lines_of(even, slower(0.5), joules=2.0)[1:]
    assert goodput == (
        "Goodput with TTFT up to 100 ms and TPOT up to 30.0 ms: 9.38 req/s at 8 requests in flight "
        "(baseline), 4.69 req/s at 4 requests in flight (contender)."
    )
    assert energy == (
        "Least energy per token: 0.25 J at 8 requests in flight (baseline), 0.25 J at 8 requests "
        "in flight (contender)."
    )
    assert len(lines_of(even, even, slo={})) == 1
    assert "none at any load (baseline)" in lines_of(even, even, slo={"tpot": 0.001})[1]


def test_comment_and_terminal_say_it_and_a_report_without_curves_does_not():
    report = build_report(a_swept_run(even, tilted))
    stream = io.StringIO()
    print_table(report, Console(file=stream, width=300))
    for text in (render_comment(report), stream.getvalue()):
        assert "The curves cross between" in text
    assert "tok/s per user" not in render_comment(PLAIN)


def test_json_has_the_points_and_is_what_the_api_describes():
    document = comparison_to_json(build_report(a_swept_run(even, tilted)))
    found = json.loads(json.dumps(document))["tradeoff"]
    point = found["baseline"]["points"][0]
    assert (point["load"], point["goodput"]["low"] > 0) == (1, True)
    assert found["stretches"][0]["better"] == "baseline"
    assert len(found["crossings"]) == 1
    assert ReportAnswer.model_validate_json(json.dumps(document)).tradeoff is not None
    assert "tradeoff" not in comparison_to_json(PLAIN)


def test_a_duet_counts_the_seconds_of_the_processor():
    found = tradeoff_in(build_report(a_swept_run(even, tilted, duet=True)))
    assert any("tok per processor second per user" in line for line in tradeoff_lines(found))
    assert not any("tok/s" in line for line in tradeoff_lines(found))
