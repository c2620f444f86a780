"""A store with everything that pages can show: nightly builds, a step, alerts, a control."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from hybridwatch.record.identity import ScenarioRef
from hybridwatch.store import write_run
from tests.builders import BASELINE, CONTENDER, Trials, a_build, a_run, noisy

NIGHTS: Final = 16
_SLOW_FROM: Final = 9
_NAMES: Final = ("smoke/padded-graph-rows", "smoke/spec-decode-all-cache")


def write_nights(results: Path) -> None:
    """Measure two scenarios every night until yesterday, and a control once.

    The contender is each night's build and becomes slower half-way. All columns of the overview
    are filled.
    """
    first = datetime.now(UTC).replace(microsecond=0) - timedelta(days=NIGHTS)
    for nth in range(2 * NIGHTS):
        night, name = nth // 2, _NAMES[nth % 2]
        release = f"0.28.1.dev{night}+g{night:07x}"
        nightly = replace(a_build("cpu-nightly-candidate"), release=release)
        slower = 1.3 if night >= _SLOW_FROM else 1.0
        made = a_run(
            _metrics(1.0, seed=nth),
            _metrics(slower, seed=nth + 500),
            id=f"{nth:08x}",
            started_at=first + timedelta(days=night, minutes=nth % 2),
            scenario=ScenarioRef(name, 1, "d" * 64, "padded-rows-prefilling"),
            builds=(BASELINE, nightly),
        )
        write_run(results, made)
    control = a_run(
        _metrics(1.0, seed=1),
        {**_metrics(1.0, seed=2), "contract.padded_rows_prefilling": (3.0, 3.0)},
        id="c0ffee00",
        started_at=first + timedelta(days=NIGHTS - 1, hours=1),
        builds=(BASELINE, CONTENDER),
    )
    write_run(results, control)


def _metrics(slower: float, seed: int) -> dict[str, Trials]:
    times = {"ttft": 0.1, "tpot": 0.02, "itl": 0.02, "e2el": 2.0, "host_syncs_per_step": 3.0}
    return {
        **{name: noisy(s * slower, seed=seed) for name, s in times.items()},
        "output_throughput": noisy(600 / slower, seed=seed),
        "contract.padded_rows_prefilling": (0.0, 0.0),
        "accuracy.recall": "1" * 30,
    }
