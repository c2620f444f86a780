"""How much of their noise the timed metrics of recorded runs have in common.

Metrics of one trial see the same steps: a slow one is in throughput, inter-token time and latency
at once. A family of metrics that move together costs each of them less power.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Comparison
from hybridwatch.metrics import Kind
from hybridwatch.records.store import list_records, read_run

_FEWEST_METRICS: Final = 5
_FEWEST_BLOCKS: Final = 7
"""Below these the correlations of a run say little."""


def correlations_in(results: Path) -> Iterator[float]:
    """Give for each run of a store how strongly its times and rates move together.

    Args:
        results: Folder of the records.

    Yields:
        The mean absolute correlation of two metrics' log ratios within blocks, from 0 to 1; nothing
        for runs of few blocks or metrics.
    """
    for record in list_records(results):
        run = read_run(record)
        if len(run.builds) != 2:
            continue  # compared with another record, block by block with none
        ratios = [one.ratios for one in build_report(run).comparisons if _is_timed(one)]
        blocks = max(map(len, ratios), default=0)
        rows = np.array([row for row in ratios if len(row) == blocks and np.ptp(row)])
        if len(rows) < _FEWEST_METRICS or blocks < _FEWEST_BLOCKS:
            continue
        pairs = np.corrcoef(rows)[np.triu_indices(len(rows), 1)]
        yield float(np.abs(pairs).mean())


def _is_timed(comparison: Comparison) -> bool:
    return bool(comparison.ratios) and comparison.metric.kind is not Kind.COUNT
