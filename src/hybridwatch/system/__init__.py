"""The machine below: processes, files, locks, terminals, and where things lie.

Engines, load clients and lm-eval run under a guard and end with us. ``guarded`` starts them,
``guard`` is the small program that stays between them and us; ``stopping`` makes sure that a signal
ends them all, and us. ``processor_time`` counts what they work. ``nvidia`` asks the driver of this
machine's GPUs. ``shipped`` and ``home`` say where scenarios, models and builds lie.
"""

from hybridwatch.system.guarded import (
    ConversingProcess,
    GuardedProcess,
    processor_seconds,
    without_proxy,
)
from hybridwatch.system.stopping import require_wanted, stoppable

__all__ = [
    "ConversingProcess",
    "GuardedProcess",
    "processor_seconds",
    "require_wanted",
    "stoppable",
    "without_proxy",
]
