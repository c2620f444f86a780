"""``hybridwatch comment`` from records to a comment and a check, over real HTTP."""

import logging
from dataclasses import replace
from urllib.parse import quote_plus

import pytest

from hybridwatch.records.store import write_run
from hybridwatch.reports.pull_request import LIMIT, ChangeNews, news_in
from tests.builders import RECENT, Trials, noisy
from tests.builders import a_comparison as a_run
from tests.command_line import run_verb
from tests.github.hub import EARLIER, HEAD, NUMBER, REPOSITORY, TOKEN, Fault
from tests.situations import HOSTILE

PADDED = "contract.padded_rows_prefilling"
GOOD: dict[str, Trials] = {PADDED: (0.0,), "accuracy.recall": "1" * 200}
BAD: dict[str, Trials] = {PADDED: (4.0,), "accuracy.recall": "1" * 200}
LEFT, RIGHT = ({"tpot": noisy(1.0, 7, 0.03, seed)} for seed in (1, 2))
RESTLESS = [{"tpot": noisy(1.0, 7, 0.2, seed)} for seed in (1, 2)]
EXPECTED = "smoke/padded-graph-rows"


@pytest.fixture
def bot(hub, tmp_path, monkeypatch):
    """Run the bot on records of a folder that has nothing else in it."""
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_API_URL", hub.base)
    for name in ("GITHUB_STEP_SUMMARY", "GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    policy = tmp_path / "gate.toml"
    policy.write_text(f'expected = ["{EXPECTED}"]\n[[rule]]\nmetric = "*"\naction = "block"\n')

    def run(*runs, more=()):
        folder = tmp_path / f"results-{len(list(tmp_path.iterdir()))}"
        for at, one in enumerate(runs):
            write_run(folder, replace(one, id=f"{at:08x}", started_at=RECENT))
        words = ["--repo", REPOSITORY, "--pr", str(NUMBER), "--results", str(folder)]
        answer = run_verb("comment", *words, "--policy", policy, *more)
        assert TOKEN not in answer.output + repr(answer.exception)
        return answer

    return run


def test_the_life_of_a_pull_request(hub, bot) -> None:
    """Silent, bad news, the same bad news, recovered, still well, worse again."""
    told = [
        bot(a_run(*sides)).stdout.split("\n")[0]
        for sides in (
            (GOOD, GOOD),
            (GOOD, BAD),
            (GOOD, BAD),
            (GOOD, GOOD),
            (GOOD, GOOD),
            (GOOD, BAD),
        )
    ]
    assert told == [
        f"comment: {what}"
        for what in ("silent", "posted", "unchanged", "edited", "unchanged", "edited")
    ]
    (body,) = hub.bodies()
    assert body.startswith("**A contract broke: ")
    conclusions = [check["conclusion"] for check in hub.checks]
    assert conclusions == ["success", "failure", "success", "failure"]
    assert {check["head_sha"] for check in hub.checks} == {HEAD}


def test_recovered_is_said_in_the_comment(hub, bot) -> None:
    bot(a_run(GOOD, BAD))
    bot(a_run(GOOD, GOOD))
    (body,) = hub.bodies()
    assert body.startswith("**Recovered: the bad news")
    assert news_in(body) is ChangeNews.RECOVERED


@pytest.mark.parametrize(
    ("sides", "conclusion"), [((GOOD, GOOD), "success"), ((LEFT, RIGHT), "neutral")]
)
def test_an_a_a_comparison_is_silent(hub, bot, sides, conclusion) -> None:
    answer = bot(a_run(*sides))
    assert answer.output == f"comment: silent\ncheck:   {conclusion}, posted\n"
    assert hub.comments == []


def test_a_measurement_that_could_see_nothing_is_reported_and_settled_later(hub, bot) -> None:
    assert bot(a_run(*RESTLESS)).output == "comment: posted\ncheck:   neutral, posted\n"
    (body,) = hub.bodies()
    assert body.startswith("**Could only have seen changes above ")
    assert "nothing has to be done" not in body
    assert hub.checks[-1]["output"]["title"].startswith("Could only have seen")
    bot(a_run(GOOD, GOOD))
    (body,) = hub.bodies()
    assert body.startswith("**Measured well enough this time")
    assert news_in(body) is ChangeNews.SEEING


def test_bad_news_is_not_called_over_by_a_measurement_that_sees_nothing(hub, bot) -> None:
    bot(a_run(GOOD, BAD))
    bot(a_run(*RESTLESS))
    (body,) = hub.bodies()
    assert "Recovered" not in body
    assert "It is open whether the bad news reported here before is over." in body
    bot(a_run(GOOD, GOOD))
    assert hub.bodies()[0].startswith("**Recovered: the bad news")


def test_an_expected_scenario_that_is_missing_is_reported_with_those_that_are_there(
    hub, bot
) -> None:
    other = a_run(GOOD, GOOD)
    assert bot(replace(other, scenario=replace(other.scenario, id="smoke/other"))).exit_code == 0
    (body,) = hub.bodies()
    assert f"- {EXPECTED}: not judged: missing" in body
    assert hub.checks[-1]["conclusion"] == "failure"
    assert "1 scenario not judged" in hub.checks[-1]["output"]["title"]


def test_several_scenarios_are_one_comment(hub, bot) -> None:
    runs = [a_run(GOOD, GOOD), a_run(GOOD, BAD)]
    runs[1] = replace(runs[1], scenario=replace(runs[1].scenario, id="smoke/other"))
    bot(*runs)
    (body,) = hub.bodies()
    assert "<summary>Report on <code>smoke/padded-graph-rows</code>: 2 equivalent" in body
    assert "<summary>Report on <code>smoke/other</code>: 1 regression" in body


def test_too_long_a_story_goes_on_in_the_job_summary(hub, bot, tmp_path, monkeypatch) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    runs = [
        replace(run, scenario=replace(run.scenario, id=f"smoke/number-{number}"))
        for number, run in enumerate([a_run(GOOD, BAD)] * 60)
    ]
    assert bot(*runs).exit_code == 0
    (body,) = hub.bodies()
    assert len(body) <= LIMIT
    assert "job summary" in body
    assert summary.read_text().count("<summary>Report on") == 60
    assert len(hub.checks[-1]["output"]["summary"]) <= 65_535


def test_a_short_story_has_no_summary(bot, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    bot(a_run(GOOD, BAD))
    assert not (tmp_path / "summary.md").exists()


def test_both_builds_are_a_click_away_where_a_dashboard_is_named(hub, bot) -> None:
    bot(a_run(GOOD, BAD), more=("--dashboard", "https://bench.example.org/"))
    (body,) = hub.bodies()
    old, new = (quote_plus(one.label) for one in a_run(GOOD, BAD).builds)
    view = f"compare?scenario=all&contender={new}&baseline={old}"
    assert body.count(f" in every scenario](<https://bench.example.org/{view}>)\n") == 1
    assert hub.checks[0]["output"]["summary"].count(view) == 1
    assert "in every scenario](" not in bot(a_run(GOOD, BAD), more=("--dry-run",)).stdout


def test_a_build_against_itself_has_no_page(bot) -> None:
    run = a_run(*RESTLESS)
    words = ("--dry-run", "--dashboard", "http://localhost:8501")
    answer = bot(replace(run, builds=(run.builds[0], run.builds[0])), more=words)
    assert answer.exit_code == 0
    assert "http://localhost" not in answer.stdout


def test_the_check_leads_to_the_job(hub, bot, monkeypatch) -> None:
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
    monkeypatch.setenv("GITHUB_REPOSITORY", REPOSITORY)
    monkeypatch.setenv("GITHUB_RUN_ID", "42")
    bot(a_run(GOOD, BAD))
    assert hub.checks[0]["details_url"] == f"https://github.com/{REPOSITORY}/actions/runs/42"


def test_hostile_records_are_reported_harmlessly(hub, bot) -> None:
    run = a_run(GOOD, BAD)
    bot(replace(run, scenario=replace(run.scenario, id=HOSTILE)))
    (body,) = hub.bodies()
    assert "<script" not in body.split("```")[0]
    assert "@everyone" not in body.split("```")[0]
    assert "\n" not in hub.checks[0]["output"]["title"]


def test_what_was_measured_must_be_of_the_pull_request(hub, bot) -> None:
    """A stranger's job may name any pull request; the commit it ran on is GitHub's word."""
    answer = bot(a_run(GOOD, BAD), more=("--head", "c" * 40))
    assert answer.exit_code == 2
    assert f"commit {'c' * 40} does not belong to this pull request" in answer.stderr
    assert (hub.comments, hub.checks) == ([], [])


def test_an_overtaken_commit_is_passed_over(hub, bot) -> None:
    answer = bot(a_run(GOOD, BAD), more=("--head", EARLIER))
    assert answer.exit_code == 0
    assert "no longer the head" in answer.output
    assert (hub.comments, hub.checks) == ([], [])
    assert bot(a_run(GOOD, BAD), more=("--head", HEAD)).output.startswith("comment: posted")


@pytest.mark.parametrize("token", [None, ""])
def test_no_token_is_a_wrong_call(hub, bot, monkeypatch, token) -> None:
    if token is None:
        monkeypatch.delenv("GITHUB_TOKEN")
    else:
        monkeypatch.setenv("GITHUB_TOKEN", token)
    answer = bot(a_run(GOOD, BAD))
    assert answer.exit_code == 2
    assert answer.stderr == (
        "hybridwatch: GITHUB_TOKEN: expected a token in the environment, found none\n"
    )
    assert hub.requests == []


def test_a_refusal_is_one_line_and_status_2(hub, bot, overheard) -> None:
    hub.faults.append(Fault("POST", "/comments", 403, {"message": f"not you, {TOKEN}"}))
    answer = bot(a_run(GOOD, BAD))
    assert answer.exit_code == 2
    assert answer.stderr.count("\n") == 1
    assert "403: not you, ***" in answer.stderr
    assert logging.getLogger("github").isEnabledFor(logging.DEBUG)
    assert TOKEN not in overheard.getvalue()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--repo", "octo"), "expected OWNER/NAME, found 'octo'"),
        (("--repo", "octo/engine/../x"), "expected OWNER/NAME"),
        (("--pr", "0"), "0 is not in the range"),
        (("--head", "main"), "expected a whole commit id, found 'main'"),
        (("--dashboard", "x>)[y"), "expected an address with https://, found 'x>)[y'"),
    ],
)
def test_a_wrong_word_is_a_wrong_call(bot, hub, words, told) -> None:
    answer = bot(a_run(GOOD, BAD), more=words)
    assert answer.exit_code == 2
    assert told in answer.stderr
    assert hub.requests == []
