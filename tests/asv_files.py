"""Folders of results as asv 0.6.6 writes them, from few words."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DAY_MS = 24 * 3600 * 1000
FIRST_DAY_MS = 1_767_225_600_000
"""2026-01-01, UTC."""
MACHINE = {
    "machine": "bench-1",
    "os": "Linux 6.1",
    "arch": "aarch64",
    "cpu": "Neoverse",
    "num_cpu": "8",
    "ram": "33554432000",
}
COLUMNS = (
    "result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b",
    "stats_q_25", "stats_q_75", "stats_number", "stats_repeat", "samples", "profile",
)  # fmt: skip
VERSION = "a" * 64
NAN = float("nan")


def row(
    *cells: float | None,
    params: Sequence[Sequence[str]] = (),
    samples: Sequence[Sequence[float] | None] | None = None,
    version: str = VERSION,
    stats: Sequence[Any] = (None,) * 6,
    day: int = 0,
) -> list[Any]:
    """What a file says of one benchmark."""
    began = FIRST_DAY_MS + day * DAY_MS + 5000
    listed: list[Any] = [list(cells), list(params), version, began, 2.5, *stats, samples]
    while listed[-1] is None:
        del listed[-1]
    return listed


def describe(name: str, unit: str, kind: str = "track", **changes: Any) -> dict[str, Any]:
    """What ``benchmarks.json`` says of it."""
    usual = {"code": "pass", "name": name, "param_names": [], "params": [], "type": kind}
    return {**usual, "unit": unit, "version": VERSION, "timeout": 60.0, **changes}


def write_results(
    folder: Path,
    results: Mapping[str, Any],
    *,
    commit: str = "a" * 40,
    day: int = 0,
    machine: Mapping[str, str] = MACHINE,
) -> Path:
    """Write the results of one commit, and the machine's description beside them."""
    place = folder / machine["machine"]
    place.mkdir(parents=True, exist_ok=True)
    (place / "machine.json").write_text(json.dumps({**machine, "version": 1}))
    path = place / f"{commit[:8]}-virtualenv-py3.12.json"
    path.write_text(
        json.dumps(
            {
                "commit_hash": commit,
                "env_name": "virtualenv-py3.12",
                "date": FIRST_DAY_MS + day * DAY_MS,
                "params": {**machine, "python": "3.12"},
                "python": "3.12",
                "requirements": {},
                "env_vars": {},
                "result_columns": COLUMNS,
                "results": results,
                "durations": {"<build>": 1.5},
                "version": 2,
            }
        )
    )
    return path


def write_benchmarks(folder: Path, *described: Mapping[str, Any]) -> None:
    """Write ``benchmarks.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    table = {one["name"]: one for one in described}
    (folder / "benchmarks.json").write_text(json.dumps({**table, "version": 2}))
