"""How a verdict came about, and two curves in words: true sentences, pages as reviewed."""

import io
import json
import random
import re
from dataclasses import replace

import pytest
from rich.console import Console

from hybridwatch.analysis.judge import judge_together
from hybridwatch.analysis.replay import Deviation, VerdictReplay, list_parameters
from hybridwatch.analysis.report import Terms, build_report, report_between
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.analysis.wording.report_json import ReportAnswer, comparison_to_json
from hybridwatch.reports.explanation import (
    conclusion,
    print_explanation,
    print_replay,
    replay_to_json,
)
from hybridwatch.reports.markdown import render_comment
from hybridwatch.reports.reason_text import against, because, cost_line, tradeoff_lines
from hybridwatch.reports.table import print_table
from tests.builders import Trials, a_comparison, a_run, noisy
from tests.curves import a_swept_run, even, slower, tilted, tradeoff_in
from tests.situations import HOSTILE, SITUATIONS

CLAIM = re.compile(r"([\d.e+-]+) ([<>=]) ([\d.e+-]+)")
HOLDS = {"<": lambda a, b: a < b, ">": lambda a, b: a > b, "=": lambda a, b: a == b}
PLAIN = build_report(a_comparison({"ttft": (1.0,)}, {"ttft": (1.0,)}))


def comparisons():
    return [c for situation in SITUATIONS.values() for c in situation().comparisons]


def test_every_verdict_of_every_situation_is_the_sentences_last_word() -> None:
    seen = {c.verdict for c in comparisons()}
    assert seen == set(Verdict)
    for comparison in comparisons():
        assert because(comparison, 0.05).endswith(f": {comparison.verdict.value}")


def test_no_sentence_claims_what_its_numbers_deny() -> None:
    tested = [c for c in comparisons() if c.p_value is not None]
    rng = random.Random(5)
    near = (0.049996, 0.0499, 0.05, 0.050004, 0.2, 1e-9)
    checked = 0
    for _ in range(300):
        drafts = [
            replace(
                comparison,
                p_value=rng.choice(near),
                equivalence_p=rng.choice(near),
                effect=rng.choice((0.0300001, 0.029999, -0.03, 0.01, 0.2)),
                verdict=Verdict.INCONCLUSIVE,
                doubts=(),
            )
            for comparison in rng.sample(tested, 3)
        ]
        for judged in judge_together(drafts, 0.05)[0]:
            sentence = because(judged, 0.05)
            for left, sign, right in CLAIM.findall(sentence):
                assert HOLDS[sign](float(left), float(right)), sentence
                checked += 1
            assert judged.p_adjusted is not None
            assert (f"{judged.p_adjusted:.2g}" == "0.05") or ("p" in sentence)
            if judged.verdict in {Verdict.REGRESSION, Verdict.IMPROVEMENT}:
                assert " is beyond the bound" in sentence
            if judged.verdict is Verdict.EQUIVALENT:
                assert " inside the band" in sentence
    assert checked > 900


@pytest.mark.parametrize(
    ("number", "bound", "text"),
    [
        (0.0031234, 0.05, "0.00312 < 0.05"),
        (0.0499999, 0.05, "0.0499999 < 0.05"),
        (0.05, 0.05, "0.05 = 0.05"),
        (0.6, 0.05, "0.6 > 0.05"),
        (0.1 + 0.2, 0.3, "0.30000000000000004 > 0.3"),
    ],
)
def test_two_numbers_never_look_alike_unless_they_are(number, bound, text) -> None:
    assert against(number, bound) == text


def explained(report, left: OneSide, right: OneSide, noise=()) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=100, force_terminal=False)
    parameters = list_parameters(report.false_discovery_rate, dict(noise))
    for comparison in report.comparisons:
        print_explanation(comparison, report, (left, right), parameters, console)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


OLD: dict[str, Trials] = {
    "contract.padded_rows_prefilling": (0.0,) * 3,
    "contract.wrong_tokens": (3.0, 5.0),
    "accuracy.recall": "1" * 190 + "0" * 10,
    "output_throughput": noisy(812.0, 12, 0.02, 1),
    "ttft": noisy(0.0413, 12, 0.01, 2),
    "host_syncs_per_step": (3.0,) * 7,
}


NEW: dict[str, Trials] = {
    "contract.padded_rows_prefilling": (0.0, 12.0, 12.0),
    "contract.wrong_tokens": (4.0, 6.0),
    "accuracy.recall": "1" * 170 + "0" * 30,
    "output_throughput": noisy(740.0, 12, 0.02, 3),
    "ttft": noisy(0.0413, 12, 0.01, 4),
    "host_syncs_per_step": (3.0,) * 7,
    "tpot": (0.01,),
}


def test_blocks_read_as_reviewed(golden) -> None:
    run = a_run(OLD, NEW)
    sides = OneSide(run, 0), OneSide(run, 1)
    text = explained(report_between(*sides), *sides)
    golden.check("explanation/blocks.txt", text)


def test_two_runs_read_as_reviewed(golden) -> None:
    old, new = a_run({"ttft": OLD["ttft"]}), a_run({"ttft": noisy(0.0430, 12, 0.01, 5)})
    new = replace(new, id="22222222")
    noise = {("ttft", "median"): 0.02}
    sides = OneSide(old, 0), OneSide(new, 0)
    text = explained(report_between(*sides, Terms(noise=noise)), *sides, noise)
    golden.check("explanation/two_runs.txt", text)


REPLAYED = VerdictReplay(
    deviations=(
        Deviation("comparisons[0].verdict", "equivalent", "regression"),
        Deviation("differences[0]", HOSTILE, "(nothing)"),
        *(Deviation(f"comparisons[1].baseline.values[{at}]", 1.0, 0.0) for at in range(30)),
    ),
    alterations=("results/x.json was altered after it was judged",),
    changes=("scipy: 1.17.1 -> 1.18.0",),
)


def test_a_replay_that_differs_reads_as_reviewed(golden, tmp_path) -> None:
    stream = io.StringIO()
    print_replay(
        tmp_path.relative_to(tmp_path) / "verdict.json",
        REPLAYED,
        SITUATIONS["regression"](),
        Console(file=stream, width=100, force_terminal=False),
    )
    text = "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"
    assert "\x1b" not in text
    golden.check("explanation/differs.txt", text)


def test_json_of_a_replay_is_json() -> None:
    report = SITUATIONS["regression"]()
    told = json.loads(
        json.dumps(replay_to_json(REPLAYED, report, report.comparisons), allow_nan=False)
    )
    assert told["same"] is False
    assert len(told["deviations"]) == 32
    assert told["deviations"][0] == {
        "path": "comparisons[0].verdict",
        "stored": "equivalent",
        "again": "regression",
    }
    assert len(told["explanations"]) == len(report.comparisons)


def test_the_conclusion_names_a_suspect_or_a_defect() -> None:
    report = SITUATIONS["regression"]()
    odd = (Deviation("tests", 1, 2),)
    assert conclusion(VerdictReplay((), (), ()), report).startswith("the same, bit for bit")
    assert "please report" in conclusion(VerdictReplay(odd, (), ()), report)
    assert "what computes it has changed" in conclusion(VerdictReplay(odd, (), ("a",)), report)
    assert "a file was altered" in conclusion(VerdictReplay(odd, ("b",), ()), report)


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


def test_a_million_tokens_cost_what_the_machine_takes_for_them() -> None:
    # At 1,000 tok/s a million take 1,000 s, at 800 they take 1,250.
    report = build_report(
        a_comparison({"output_throughput": [1000.0] * 7}, {"output_throughput": [800.0] * 7})
    )
    said = "At 3.6 per hour a million output tokens cost 1 (baseline), 1.25 (contender)."
    assert cost_line(report, 3.6) == said
    assert cost_line(report, None) == ""
    assert cost_line(PLAIN, 3.6) == ""
