"""Two servers at once: equal ones, and what differs in the second one."""

import asyncio

import pytest

from hybridwatch.server_check.plan import Settings, check_server
from hybridwatch.server_check.record import judge_pair
from hybridwatch.server_check.result import CheckResult, PairResult, Side, Tally, TimedBlock
from hybridwatch.server_check.screen import write_result
from tests.unit.server_check.language_server import LanguageServer, served


def compare(first: LanguageServer, second: LanguageServer, **settings) -> CheckResult:
    wanted = {"minutes": 60.0, "pause_s": 0.0, "rounds": 1, "known": 12, **settings}
    with served(first) as url, served(second) as other:
        return asyncio.run(check_server(Settings(url, other, **wanted)))


def test_equal_servers_hold_every_relation():
    found = compare(LanguageServer(), LanguageServer())
    assert found.broke == []
    assert {tally.outcome for tally in found.tallies.values()} == {"held"}
    assert found.tallies["answers"].checked == 100
    assert found.releases == ["0.31.0", "0.31.0"]
    assert not found.errors


def test_another_token_is_named_with_the_smallest_request_to_both():
    found = compare(LanguageServer(), LanguageServer("one token"), only=("tokens",))
    assert found.broke == ["tokens"]
    first = found.tallies["tokens"].breaks[0]
    assert "alone: token 1 is 'token_id:" in first.said
    old, new = first.curl
    assert found.url in old
    assert found.pair is not None
    assert found.pair.url in new
    assert old.replace(found.url, found.pair.url) == new


def test_a_fault_in_company_alone_is_no_other_token():
    found = compare(LanguageServer(), LanguageServer("company"), only=("company",))
    assert found.broke == ["company"]


def test_near_ties_are_counted_and_break_nothing():
    ties = LanguageServer(has_ties=True), LanguageServer("rounds otherwise", has_ties=True)
    found = compare(*ties, only=("tokens", "company"))
    assert found.broke == []
    assert found.tallies["tokens"].outcome == "within rounding"
    assert found.tallies["tokens"].within_rounding > 1


def test_strictly_a_near_tie_is_another_token():
    ties = LanguageServer(has_ties=True), LanguageServer("rounds otherwise", has_ties=True)
    assert compare(*ties, only=("tokens",), strict=True).broke == ["tokens"]


def test_lost_answers_are_named_and_answers_won_are_not():
    knows, does_not = LanguageServer(knows_lists=True), LanguageServer()
    found = compare(knows, does_not, only=("answers",))
    assert found.broke == ["answers"]
    said = found.tallies["answers"].breaks[0].said
    assert said == "recall: 100 of 100 questions answered right by the first server, 0 here"
    assert "answers" not in compare(does_not, knows, only=("answers",)).broke


def test_a_slower_server_is_named_by_its_ratio():
    found = compare(LanguageServer(), LanguageServer("slow"), only=("speed",), rounds=6)
    assert found.broke == []
    assert found.pair is not None
    speeds = {one["metric"]: one for one in found.pair.speeds}
    assert set(speeds) == {"ttft", "tpot", "output_throughput"}
    assert speeds["tpot"]["interval"][0] > 1
    assert speeds["output_throughput"]["interval"][1] < 1


def timed(ttft: float, throughput: float) -> Side:
    return Side([ttft] * 3, [0.01] * 3, 1.0, throughput)


@pytest.mark.parametrize(("blocks", "around"), [(8, "1.250 to 1.250, 8 blocks"), (2, "too few")])
def test_a_ratio_has_an_interval_where_blocks_are_enough(blocks, around):
    result = CheckResult("http://one", model="made", releases=["", ""])
    result.pair = PairResult("http://two")
    result.tallies = {"answers": Tally("answers"), **result.tallies}
    for at in range(blocks):
        block = TimedBlock(result.started_at, (timed(1.0 + at, 8.0), timed(1.25 + 1.25 * at, 4.0)))
        result.pair.blocks.append(block)
    judge_pair(result, result.pair)
    lines = "\n".join(write_result(result))
    assert "ttft median: 1.250 times the first server's" in lines
    assert around in lines
    assert "output_throughput: 0.500 times" in lines


def test_what_one_server_does_not_take_is_asked_of_neither():
    second = LanguageServer(refuses=frozenset({"return_tokens_as_token_ids"}), has_ids=False)
    found = compare(LanguageServer(), second, only=("tokens",))
    assert found.broke == []
    assert found.tallies["tokens"].checked
