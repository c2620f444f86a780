"""Gauges for Prometheus, read back by Prometheus' own parsers, and rules over them."""

import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from hybridwatch.analysis.policy import Policy
from hybridwatch.database.connection import Database, find_database_url
from hybridwatch.database.queries import open_index
from hybridwatch.history.checkout import Checkout
from hybridwatch.orchestration.fleet.job_queue import JobQueue
from hybridwatch.orchestration.nightly.gauges import to_openmetrics
from hybridwatch.records.store import write_run
from tests.builders import BASELINE, NIGHTLY, STARTED
from tests.command_line import run_verb
from tests.store_builders import Plan, run
from tests.unit.database.stores import add
from tests.unit.orchestration.fleet.pretended import a_job

ROOT = Path(__file__).parents[4]
RULES = ROOT / "ci" / "prometheus.rules.yml"
NOW = datetime(2026, 11, 22, tzinfo=UTC)
PLACE = ("smoke/padded-graph-rows", "epyc-4c")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A regression, a damaged record and a queue of one job."""
    add(tmp_path, 1, slower=1.3, builds=(BASELINE, NIGHTLY))
    write_run(tmp_path, run(Plan(seed=9, started_at=STARTED - timedelta(1)))).write_bytes(b"{")
    queue = JobQueue(Database(find_database_url(tmp_path)))
    queue.make()
    queue.plan([a_job()])
    return tmp_path


def gauges(results: Path, policy: Policy | None = None) -> dict[str, dict[frozenset[str], float]]:
    """Each gauge's values by the values of its labels."""
    checkout = Checkout(policy=policy or Policy())
    written = to_openmetrics(results, open_index(results), checkout, NOW).decode()
    return {
        family.name.removeprefix("hybridwatch_"): {
            frozenset(sample.labels.values()): sample.value for sample in family.samples
        }
        for family in text_string_to_metric_families(written)
    }


def test_gauges_say_what_the_pages_say(store) -> None:
    found = gauges(store, Policy(expected=("smoke/nowhere",)))
    assert found["unreadable_records"] == {frozenset(): 1}
    assert found["fleet_jobs"] == {frozenset({"waiting"}): 1}
    assert frozenset({"smoke/nowhere", ""}) in found["missing"]
    (newest,) = found["newest_run_timestamp_seconds"].values()
    assert newest == (STARTED + timedelta(days=1)).timestamp()
    assert found["verdicts"][frozenset({*PLACE, BASELINE.label, NIGHTLY.label, "regression"})]
    assert {key for key in found["alerts"] if "open" in key and "block" in key}


def test_a_store_without_news_has_no_open_alert(tmp_path) -> None:
    write_run(tmp_path, run(Plan()))
    found = gauges(tmp_path)
    assert (found["alerts"], found["missing"]) == ({}, {})
    assert "fleet_jobs" not in found


def test_the_verb_writes_what_it_prints(store, tmp_path) -> None:
    file = tmp_path / "textfile" / "hybridwatch.prom"
    words = ["openmetrics", "--results", str(store)]
    printed = run_verb(*words)
    assert (printed.exit_code, printed.stdout[-6:]) == (0, "# EOF\n")
    run_verb(*words, "--out", file, status=0)
    assert file.read_text() == printed.stdout


CASES = """
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
{series}
    promql_expr_test:
      - {{expr: 'count(ALERTS{{alertstate="firing"}})', eval_time: 4h, exp_samples: [{expected}]}}
"""
BAD = (
    'alerts{scenario="smoke/a",testbed="t",status="open",action="block"}',
    'missing{scenario="smoke/a",testbed="t"}',
    "unreadable_records",
    'fleet_jobs{state="waiting"}',
    'fleet_hosts{standing="quarantined",there="true"}',
)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is Prometheus' own checker")
@pytest.mark.parametrize(("value", "expected"), [(1, f"{{value: {len(BAD)}}}"), (0, "")])
def test_rules_are_sound_and_each_fires_on_its_gauge(tmp_path, value, expected) -> None:
    lines = (f"      - {{series: 'hybridwatch_{one}', values: '{value}x300'}}\n" for one in BAD)
    file = tmp_path / "cases.yml"
    file.write_text(CASES.format(rules=RULES, series="".join(lines), expected=expected))
    words = ["promtool", "test", "rules", file]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
