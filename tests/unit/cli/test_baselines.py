"""Pinned baselines, and comparisons across testbeds."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from hybridwatch.errors import RecordError
from hybridwatch.records.codec import decode_record
from hybridwatch.records.store import list_verdicts, read_baselines, write_run
from tests.builders import BASELINE, RECENT, a_run, noisy

GOOD = {"contract.padded_rows_prefilling": (0.0,), "tpot": noisy(1.0, 9, 0.01)}
BAD = {"contract.padded_rows_prefilling": (4.0,), "tpot": noisy(1.0, 9, 0.01, 2)}
PIN = """
[[baseline]]
scenario = "smoke/padded-graph-rows"
testbed = "epyc-4c"
run = "1f0a9c3e"
side = 0
reason = "last good release"
date = 2026-11-21
who = "on duty"
"""


@pytest.fixture
def store(tmp_path):
    """Store a run under an id."""

    def write(run_id: str, *sides, **changes):
        run = replace(a_run(*sides), id=run_id, **{"started_at": RECENT} | changes)
        write_run(tmp_path, run)
        return run

    return write


def test_a_lone_build_is_compared_with_the_pinned_baseline(store, call, tmp_path) -> None:
    store("1f0a9c3e", GOOD)
    store("2f0a9c3e", BAD)
    without = call("compare", "2f0a9c3e", "--json")
    assert json.loads(without.stdout)["baseline"]["build"]["label"] == "expected"
    (tmp_path / "baselines.toml").write_text(PIN)
    for verb in ("compare", "gate"):
        answer = call(verb, "2f0a9c3e", status=1)
        assert "run 1f0a9c3e#0, pinned 2026-11-21 by on duty: last good release" in answer.output
    told = call("compare", "2f0a9c3e", "--json")
    assert json.loads(told.stdout)["baseline"]["run_id"] == "1f0a9c3e"


def test_a_pin_that_is_asked_for_and_missing_is_what_the_error_is_about(store, call) -> None:
    store("1f0a9c3e", GOOD, BAD)
    answer = call("compare", "1f0a9c3e", "--baseline", "pinned", status=2)
    assert "--baseline pinned: " in answer.output
    assert "pins no baseline for smoke/padded-graph-rows on epyc-4c" in answer.output
    assert "one side alone" not in answer.output


def test_of_a_folder_a_lone_build_is_judged_against_the_pin_and_never_against_itself(
    store, call, own_policy, tmp_path
) -> None:
    (tmp_path / "baselines.toml").write_text(PIN)
    words = own_policy()
    first = store("1f0a9c3e", GOOD)
    assert "run 1f0a9c3e#0: would be compared with itself" in call("gate", *words, status=1).output
    call("compare", "1f0a9c3e", status=2)
    call("compare", "1f0a9c3e", "1f0a9c3e", status=2)
    store("2f0a9c3e", BAD, started_at=first.started_at + timedelta(hours=1))
    told = call("gate", *words)
    assert "run 1f0a9c3e#0, pinned 2026-11-21" in told.output
    assert "padded_rows_prefilling" in told.output
    assert told.exit_code == 1
    assert "**A contract broke: contract.padded" in call("comment", "--dry-run", *words).output
    store("3f0a9c3e", GOOD, started_at=first.started_at + timedelta(hours=2))
    call("gate", *words, status=0)


def test_of_a_run_of_two_builds_the_contender_is_compared_when_asked(store, call, tmp_path) -> None:
    store("1f0a9c3e", GOOD)
    store("2f0a9c3e", BAD, BAD)
    (tmp_path / "baselines.toml").write_text(PIN)
    equally_bad = call("compare", "2f0a9c3e", status=1)
    assert "broken on both sides, so not new" in " ".join(equally_bad.output.split())
    call("compare", "2f0a9c3e", "--baseline", "pinned", status=1)
    call("compare", "2f0a9c3e#0", status=1)
    call("compare", "1f0a9c3e", "2f0a9c3e#0", "--baseline", "pinned", status=2)


def test_a_pin_that_names_the_wrong_run_is_no_baseline(store, call, tmp_path) -> None:
    other = a_run(GOOD).scenario
    store("1f0a9c3e", GOOD, scenario=replace(other, id="smoke/dummy-run"))
    store("2f0a9c3e", BAD)
    (tmp_path / "baselines.toml").write_text(PIN)
    assert "run 1f0a9c3e is of smoke/dummy-run" in call("compare", "2f0a9c3e", status=2).output


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("reason = ", "# "), "baseline[0].reason: expected a value, found nothing"),
        (("side = 0", "side = 2"), "baseline[0].side: expected less than or equal to 1, found 2"),
        (('who = "on duty"', "side ="), "expected TOML"),
        (("who = ", "whom = "), "baseline[0].whom: expected no such key, found "),
        (("", ""), "expected one baseline of smoke/padded-graph-rows on epyc-4c, found two"),
    ],
)
def test_a_wrong_file_is_reported_by_its_key(tmp_path, change, told) -> None:
    text = PIN.replace(*change) if change[0] else PIN + PIN
    (tmp_path / "baselines.toml").write_text(text)
    with pytest.raises(RecordError, match=r"baselines\.toml") as error:
        read_baselines(tmp_path)
    assert told in str(error.value)


def test_testbeds_are_compared_only_when_asked_and_the_difference_is_reported(
    store, call, tmp_path
) -> None:
    run = store("1f0a9c3e", GOOD)
    moved = replace(run.testbed, id="epyc-8c", cores=8, kernel="6.6.0")
    store("2f0a9c3e", BAD, testbed=moved)
    for verb in ("compare", "gate"):
        refused = call(verb, "1f0a9c3e", "2f0a9c3e", status=2)
        assert "testbed cores: 4 -> 8" in refused.output
        assert "testbed kernel: 6.1.0 -> 6.6.0" in refused.output
        assert "--across-testbeds" in refused.output
    asked = call("compare", "1f0a9c3e", "2f0a9c3e", "--across-testbeds", "--save", status=1)
    assert "regression" in asked.output
    assert "cores: 4 -> 8" in asked.output
    # A stored verdict remembers that it was asked for, and is had again.
    (verdict,) = list_verdicts(tmp_path)
    assert json.loads(verdict.read_text())["parameters"]["across_testbeds"] is True
    call("explain", str(verdict), status=0)


def test_only_like_runs_are_read_to_learn_noise(store, call, tmp_path, monkeypatch) -> None:
    first = store("1f0a9c3e", GOOD)
    for day in range(1, 24):
        store(f"{day:08x}", GOOD, started_at=first.started_at + timedelta(days=day))
        other = replace(first.scenario, digest="e" * 64)
        store(
            f"{day:07x}f", GOOD, started_at=first.started_at + timedelta(days=day), scenario=other
        )
    parsed: list[bytes] = []

    def watched(record: bytes):
        parsed.append(record)
        return decode_record(record)

    monkeypatch.setattr("hybridwatch.records.store.reader.decode_record", watched)
    answer = call("compare", "1f0a9c3e", "00000009", "--json")
    told = json.loads(answer.stdout)
    noisy_ones = [one for one in told["comparisons"] if one["noise"] is not None]
    assert noisy_ones
    assert parsed
    assert not any(b"e" * 64 in record for record in parsed)
    assert BASELINE.label == told["baseline"]["build"]["label"]
