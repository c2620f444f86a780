"""The one comment on a pull request, in every situation."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.metadata import version

import pytest
from markdown_it import MarkdownIt

from hybridwatch.analysis.change_review import Absent, ChangeReview
from hybridwatch.analysis.growth import Growth, find_growth
from hybridwatch.analysis.policy import Policy
from hybridwatch.analysis.report import build_report
from hybridwatch.records.run import Failure
from hybridwatch.reports.escape import in_html
from hybridwatch.reports.pull_request import (
    LIMIT,
    SUMMARY_LIMIT,
    ChangeNews,
    news_in,
    render,
    render_title,
)
from hybridwatch.reports.reason_text import cost_line
from tests.broken_engines import healthy, with_deaths
from tests.builders import a_run, noisy
from tests.findings import CASES, named
from tests.situations import HOSTILE, SITUATIONS, broken
from tests.stacks import BUSY

OURS = {
    "a", "code", "details", "h2", "li", "ol", "p", "pre", "strong", "sub", "summary",
    "table", "tbody", "td", "th", "thead", "tr", "ul", "wbr",
}  # fmt: skip


class Elements(HTMLParser):
    """Every element that a browser would make, with its attributes."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.open: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.crossed = False
        self.feed(MarkdownIt("commonmark", {"html": True}).enable(["table"]).render(markdown))

    def handle_starttag(self, tag, attrs) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))
        self.links += [value for name, value in attrs if name == "href"]
        if tag != "wbr":  # has no end
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        self.crossed |= not self.open or self.open.pop() != tag

    def handle_data(self, data) -> None:
        self.text += data


def outside_fences(text: str) -> str:
    return re.sub(r"^(`{3,})\n.*?\n\1$", "", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("case", CASES)
def test_the_comment_reads_as_reviewed(case, golden) -> None:
    text = CASES[case]().page().text
    golden.check(f"pull_request/{case}.md", text.replace(version("hybridwatch"), "VERSION"))


@pytest.mark.parametrize("case", CASES)
def test_nothing_but_our_own_elements_comes_out(case) -> None:
    page = Elements(CASES[case]().page().text)
    assert {tag for tag, _ in page.found} <= OURS
    names = {name for tag, names in page.found for name in names}
    assert names <= {"style", "href"}, "of table cells, and of commits"
    commits = "https://github.com/vllm-project/vllm/compare/1a2b3c4d5...ffff00001"
    assert set(page.links) == ({commits} if case == "nightly" else set())
    assert not page.crossed
    assert page.open == []


def test_an_unescaped_name_would_be_seen() -> None:
    """Planted: what the test above looks for, where nothing is escaped."""
    page = Elements(f"<details><summary>{HOSTILE}</summary>\n\n{HOSTILE}\n\n</details>")
    assert "script" in {tag for tag, _ in page.found}
    assert page.crossed


def test_hostile_text_is_shown_wakes_nobody_and_links_nowhere() -> None:
    text = CASES["hostile"]().page().text
    prose = outside_fences(text)
    assert not re.search(r"[@#]\w|://|\bwww\.", prose)
    assert "\u202e" not in text
    assert "\x1b" not in text
    shown = Elements(text).text
    assert "<script>alert(1)</script> | a | `b` **c** [d](http" in shown
    assert "\\" not in re.sub(r"\\(u202e|x1b|\u2026)", "", shown), "but of what steers a display"


def test_a_stranger_cannot_write_our_marker() -> None:
    """The marker is a comment at the very end; a record's text is never that."""
    mark = "<!-- hybridwatch: good -->"
    text = render(ChangeReview((), (Absent(mark, mark),))).text
    assert news_in(text) is ChangeNews.BAD
    assert outside_fences(text).count("<!--") == 1
    assert news_in(f"{mark}\nlooks good to me") is None
    assert news_in("<!-- hybridwatch: evil -->") is None


@pytest.mark.parametrize(
    ("case", "news"),
    [
        ("regression", ChangeNews.BAD),
        ("unsure", ChangeNews.BAD),
        ("worse_within", ChangeNews.BAD),
        ("missing", ChangeNews.BAD),
        ("improvement", ChangeNews.GOOD),
        ("recovered", ChangeNews.RECOVERED),
        ("gone", ChangeNews.GONE),
        ("dead", ChangeNews.BAD),
        ("blind", ChangeNews.BLIND),
        ("blind_after_bad", ChangeNews.BLIND_TO_BAD),
        ("seeing", ChangeNews.SEEING),
    ],
)
def test_the_marker_says_what_was_told(case, news) -> None:
    assert news_in(CASES[case]().page().text) is news


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (ChangeNews.BAD, ChangeNews.RECOVERED),
        (ChangeNews.RECOVERED, ChangeNews.RECOVERED),
        (ChangeNews.GOOD, ChangeNews.GONE),
        (ChangeNews.GONE, ChangeNews.GONE),
        (ChangeNews.BLIND, ChangeNews.SEEING),
        (ChangeNews.SEEING, ChangeNews.SEEING),
        (ChangeNews.BLIND_TO_BAD, ChangeNews.RECOVERED),
    ],
)
def test_news_that_is_over_is_called_by_its_name(before, after) -> None:
    quiet = ChangeReview((SITUATIONS["equivalent"](),))
    text = render(quiet, before).text
    assert news_in(text) is after
    assert text.startswith("**Recovered") is (after is ChangeNews.RECOVERED)
    loud = render(ChangeReview((SITUATIONS["regression"](),)), before).text
    assert news_in(loud) is ChangeNews.BAD
    assert loud.startswith("**Answers were lost: ")


def test_the_verdict_comes_first_then_what_is_lost_then_the_table_then_the_rest() -> None:
    lost = Absent("smoke/dummy-run", "missing: there is no record of it")
    reports = named("regression", "smoke/x"), named("failed", "smoke/y")
    text = render(ChangeReview(reports, (lost,))).text
    first = (
        "**1 scenario not judged: smoke/dummy-run. The engine hung for 60 s in smoke/y",
        "- smoke/dummy-run: not judged",
        "- smoke/y: The engine hung for 60 s",
        "|  | scenario | what |",
        "<details>",
    )
    last = (
        "**Next:**",
        "hybridwatch run smoke/x",
        "**Measured:**",
        "<sub>",
        "<!-- hybridwatch: bad",
    )
    text, rest = text[: text.rindex("</details>")], text[text.rindex("</details>") :]
    for part, words in ((text, first), (rest, last)):
        places = [part.index(word) for word in words]
        assert places == sorted(places)


def before_the_fold(case: str) -> list[str]:
    """The lines above the first report, without the one that heads a table."""
    text = CASES[case]().page().text.partition("<details>")[0]
    lines = [line for line in text.splitlines() if line]
    return [line for line in lines if not line.startswith(("|  |", "| - |"))]


@pytest.mark.parametrize("case", CASES)
def test_there_are_at_most_five_rows_before_the_fold(case) -> None:
    rows = [line for line in before_the_fold(case) if line.startswith(("| ", "- "))]
    assert len(rows) <= 5


@pytest.mark.parametrize("case", set(CASES) - {"hostile"})
def test_no_cell_of_a_comment_is_a_dash(case) -> None:
    assert not re.search(
        r"\| -(?= \|)", re.sub(r"^[|: -]+$", "", CASES[case]().page().text, flags=re.M)
    )


def test_a_dead_engine_is_one_line_one_row_and_the_end_of_its_log() -> None:
    first, *rows = before_the_fold("dead")
    assert first == (
        "**The engine died: CUDA error: an illegal memory access was encountered; all 12 metrics "
        "failed. The gate stops this.**"
    )
    assert len(rows) == 1
    text = CASES["dead"]().page().text
    assert text.count("EngineDeadError") == 1, "the log is shown once"
    assert text.index("end of the engine's log") < text.index("Report on")


def test_a_slow_down_of_ten_rows_is_one_row() -> None:
    first, *rows = before_the_fold("slower")
    assert first.startswith("**Slower: output\\_throughput -5.4 % and 6 more metrics.")
    assert len(rows) == 1


def test_a_cause_in_many_scenarios_is_reported_once_and_listed_five_times() -> None:
    first, *rows = before_the_fold("dead_in_many")
    assert first.startswith("**The engine died in all 7 scenarios: CUDA error")
    assert rows[5:] == ["and 2 more, in the reports below"]


def test_bad_news_fills_the_rows_before_good_news_gets_one() -> None:
    worse = [named("regression", f"smoke/number-{at}") for at in range(2)]
    text = render(ChangeReview((*worse, named("improvement", "smoke/dummy-run")))).text
    rows = [line for line in text.partition("<details>")[0].splitlines() if "</code>" in line]
    assert len(rows) == 5
    assert not any("smoke/dummy-run" in row for row in rows)


def test_unlike_causes_of_one_area_are_not_counted_together() -> None:
    drafts = (
        {"acceptance_length": noisy(2.0, 10, 0.01)},
        {"acceptance_length": noisy(1.5, 10, 0.01)},
    )
    slow = build_report(a_run(*drafts))
    findings = ChangeReview((slow, named("regression", "smoke/dummy-run")))
    title = render_title(findings)
    assert "Slower in smoke/dummy-run: " in title
    assert "Fewer drafts are accepted in smoke/padded-graph-rows: " in title


def test_nothing_has_to_be_done_only_when_everything_gated_is_settled() -> None:
    done = {case for case in CASES if "nothing has to be done" in CASES[case]().page().text}
    assert done == {"equivalent", "recovered", "seeing"}


def test_what_is_broken_on_both_sides_is_not_measured_again_to_see_whether_it_stays() -> None:
    text = render(ChangeReview((broken(),))).text
    assert "this change did not break it; mend it, or name in the policy why it is `known`" in text
    assert "what stays is real" not in text


def test_what_could_not_be_seen_names_the_metric_the_worst_and_what_settles_it() -> None:
    text = CASES["blind"]().page().text
    assert re.match(
        r"\*\*Could only have seen changes above \d+\.\d % in \w+, "
        r"at worst above \d+\.\d % in \w+; "
        r"nothing is known of 3 of 3 comparisons that can stop a change\.",
        text.replace("\\", ""),
    )
    assert re.search(r"it: a quieter machine; on this one it takes about \d+ trials a side", text)


@pytest.mark.parametrize("case", CASES)
def test_the_command_makes_the_trials_that_the_sentence_speaks_of(case) -> None:
    """Of trials that are worth it the command makes as many; else the sentence says what helps."""
    next_steps = CASES[case]().page().text.rpartition("**Next:**")[2]
    made = set(map(int, re.findall(r"--trials (\d+)", next_steps)))
    for told in map(int, re.findall(r"about (\d+) trials a side", next_steps)):
        if "a quieter machine; on this one" in next_steps:
            assert max(made) < told
        else:
            assert max(made) == told


def test_the_range_of_commits_is_reported_with_its_size_and_a_link() -> None:
    text = CASES["nightly"]().page().text
    link = "(https://github.com/vllm-project/vllm/compare/1a2b3c4d5...ffff00001), 7 of them"
    assert text.count(link) == 2, "in the comment, and in the report that is folded away"


@pytest.mark.parametrize("log", [HOSTILE * 40, "```\n# x\n````\n</details>", "\x1b[31m@x"])
def test_a_log_from_a_stranger_stays_inside_its_block(log) -> None:
    run = with_deaths(a_run(healthy(), {}), 1, Failure("it died", log, engine_died=True))
    text = render(ChangeReview((build_report(run),))).text
    page = Elements(text)
    assert {tag for tag, _ in page.found} <= OURS
    assert not page.crossed
    assert page.open == []
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_a_command_from_a_record_is_one_word_for_a_shell() -> None:
    text = render(ChangeReview((), (Absent("x; rm -rf ~", "missing"),))).text
    assert "\nhybridwatch run 'x; rm -rf ~'\n" in text


def many(number: int):
    return ChangeReview(tuple(named("regression", f"smoke/number-{at}") for at in range(number)))


@pytest.mark.parametrize("number", [1, 12, 60])
def test_no_comment_is_longer_than_the_host_takes(number) -> None:
    page = render(many(number))
    assert len(page.text.encode()) <= LIMIT
    assert bool(page.left_out) is (number > 12)
    assert news_in(page.text) is ChangeNews.BAD
    assert page.text.startswith("**Answers were lost")
    assert len(page.text.encode()) > LIMIT / 2 or not page.left_out, "what fits is there"


def test_what_does_not_fit_is_in_the_summary() -> None:
    short, whole = render(many(60)), render(many(60), limit=SUMMARY_LIMIT)
    assert whole.left_out == ()
    assert len(whole.text) > LIMIT
    assert "job summary" in short.text
    for number in range(60):
        name = f"<summary>Report on <code>smoke/number-{number}</code>"
        assert name in whole.text
        assert (name in short.text) is (
            f"the report on <code>smoke/number-{number}</code>" not in short.left_out
        )


def test_hostile_floods_fit_too() -> None:
    flood = "$@" * 5_000
    report = SITUATIONS["regression"]()
    worse = tuple(
        replace(
            report, scenario=replace(report.scenario, id=f"{flood}{at}"), differences=(flood,) * 99
        )
        for at in range(50)
    )
    page = render(ChangeReview(worse, tuple(Absent(flood, flood) for _ in range(50))))
    assert len(page.text.encode()) <= LIMIT
    assert page.text.startswith("**50 scenarios not judged. ")


def test_a_title_is_one_line() -> None:
    assert "\n" not in render_title(CASES["hostile"]().findings)


def test_in_html_no_markdown_is_escaped() -> None:
    assert in_html("a_b <i> @x") == "a_b &lt;i&gt; @\u200bx"


def test_report_without_numbers_comes_before_a_report_that_regressed() -> None:
    reports = named("regression", "smoke/slower"), named("failed", "smoke/dead")
    text = render(ChangeReview(reports)).text
    dead, slower = (text.index(f"Report on <code>smoke/{name}") for name in ("dead", "slower"))
    assert dead < slower


def test_what_takes_more_time_is_named_where_it_was_sampled() -> None:
    report = SITUATIONS["regression"]()
    plain = ChangeReview((report,))
    assert "Where the time went" not in render(plain).text
    sampled = replace(plain, grown={report.contender.run_id: find_growth(*BUSY)})
    text = render(sampled).text
    assert "**Where the time went:**\n\n- +" in text
    assert "of engine time in <code>busy (model.py:10)</code>, called by <code>step (core" in text
    many = (named("regression", "smoke/dummy-run"), named("improvement", "smoke/other"))
    text = render(replace(sampled, reports=many)).text
    assert "**Where the time went in <code>smoke/dummy-run</code>:**" in text


def test_what_tokens_cost_is_said_where_the_policy_has_a_price() -> None:
    reports = named("regression", "smoke/dummy-run"), named("improvement", "smoke/other")
    plain = ChangeReview(reports)
    assert "per hour" not in render(plain).text
    text = render(replace(plain, policy=Policy(price_per_hour=2.5))).text
    cost = "At 2.5 per hour a million output tokens cost"
    assert [line for line in text.splitlines() if cost in line] == [
        f"- <code>{one.scenario.id}</code>: {cost_line(one, 2.5)}" for one in reports
    ]


def test_a_function_with_a_hostile_name_stays_code() -> None:
    report = SITUATIONS["regression"]()
    grown = tuple(Growth(name, name, 0.1) for name in (HOSTILE, "`\n# x <b>"))
    text = render(ChangeReview((report,), grown={report.contender.run_id: grown})).text
    found = Elements(text)
    assert {tag for tag, _ in found.found} <= OURS
    assert not found.open
