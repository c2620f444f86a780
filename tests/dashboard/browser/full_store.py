"""A store with everything that screens can show, and hostile texts wherever any text may stand."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from hybridwatch.database.connection import Database, find_database_url
from hybridwatch.orchestration.fleet.job_queue import JobQueue
from hybridwatch.records.identity import ScenarioRef
from hybridwatch.records.run import Run
from hybridwatch.records.store import write_run
from hybridwatch.records.store.files import append_entry
from hybridwatch.reports.releases import cells_file
from hybridwatch_lab.mutants.table import append_cell, table_file
from tests import store_builders
from tests.builders import BASELINE, CONTENDER, TESTBED, Trials, a_build, a_run, noisy
from tests.dashboard.browser.hostile import HOSTILE
from tests.store_builders import REGRESSED
from tests.unit.mutants.cells import a_cell
from tests.unit.orchestration.fleet.pretended import a_job
from tests.unit.reports.releases.cells import TOKENS
from tests.unit.reports.releases.cells import a_cell as a_cell_of

NIGHTS: Final = 16
HEALTHY: Final = f"{0:08x}"
"""The run of the first night, in which nothing is worse."""
JOB: Final = a_job(scenario=HOSTILE, batch_id=HOSTILE)
ALL_HOSTILE: Final = "bad0bad0"
"""The hostile run."""
_SLOW_FROM: Final = 9
_NAMES: Final = ("smoke/padded-graph-rows", HOSTILE)


def write_full(results: Path) -> None:
    """Measure two scenarios every night until yesterday, a control once, and all hostile once.

    The contender is each night's build and becomes slower half-way. All columns of the overview
    are filled. Nothing that is looked for depends on the day or the hour.
    """
    now = datetime.now(UTC).replace(microsecond=0)  # by the server's clock alerts are of these days
    first = now - timedelta(days=NIGHTS)
    for nth in range(2 * NIGHTS):
        write_run(results, _of_a_night(nth, first))
    control = a_run(
        _metrics(1.0, seed=1),
        {**_metrics(1.0, seed=2), "contract.padded_rows_prefilling": (3.0, 3.0)},
        id="c0ffee00",
        started_at=now - timedelta(hours=23),
        builds=(BASELINE, CONTENDER),
    )
    write_run(results, control)
    write_run(results, _hostile_run(now - timedelta(hours=1)))
    append_cell(table_file(results, "cpu-0.27.1"), a_cell("unzeroed-state"))
    for release, *wrong in (("0.32.0", TOKENS), ("0.31.0",)):
        append_entry(cells_file(results), a_cell_of(release, "v2", *wrong))
    queue = JobQueue(Database(find_database_url(results)))
    queue.make()
    queue.plan([JOB])


def write_hostile(results: Path) -> None:
    """Write the hostile run and nothing else."""
    write_run(results, _hostile_run(REGRESSED.started_at))


def _hostile_run(at: datetime) -> Run:
    """A regressed run in which everything that may be any text is hostile."""
    testbed = replace(REGRESSED.testbed, id=HOSTILE, cpu_model=HOSTILE, kernel=HOSTILE)
    made = store_builders.run(
        replace(
            REGRESSED,
            text=HOSTILE,
            scenario=replace(REGRESSED.scenario, id=HOSTILE),
            failed_trials=1,
            started_at=at,
            testbed=testbed,
        )
    )
    builds = tuple(
        replace(each, label=each.label + HOSTILE, flags={HOSTILE: HOSTILE}) for each in made.builds
    )
    return replace(
        made, id=ALL_HOSTILE, builds=builds, harness=replace(made.harness, revision=HOSTILE)
    )


def _of_a_night(nth: int, first: datetime) -> Run:
    night, name = nth // 2, _NAMES[nth % 2]
    release = f"0.28.1.dev{night}+g{night:07x}"
    nightly = replace(a_build("cpu-nightly-candidate"), release=release)
    slower = 1.3 if night >= _SLOW_FROM else 1.0
    return a_run(
        _metrics(1.0, seed=nth),
        _metrics(slower, seed=nth + 500),
        id=f"{nth:08x}",
        started_at=first + timedelta(days=night, minutes=nth % 2),
        scenario=ScenarioRef(name, 1, "d" * 64, "padded-rows-prefilling"),
        builds=(BASELINE, nightly),
        testbed=replace(TESTBED, cpu_model=HOSTILE),
    )


def _metrics(slower: float, seed: int) -> dict[str, Trials]:
    times = {"ttft": 0.1, "tpot": 0.02, "itl": 0.02, "e2el": 2.0, "host_syncs_per_step": 3.0}
    return {
        **{name: noisy(s * slower, seed=seed) for name, s in times.items()},
        "output_throughput": noisy(600 / slower, seed=seed),
        "contract.padded_rows_prefilling": (0.0, 0.0),
        "accuracy.recall": "1" * 30,
    }
