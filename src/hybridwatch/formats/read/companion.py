"""Files that only say something together with another one, and why one of them stands alone.

Those that hold measurements are named when the file that they belong to is not beside them: left
out in silence, they would pass for taken.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from hybridwatch.formats.read import aiperf, asv, lm_eval, vllm_bench
from hybridwatch.formats.read.document import Document


def _nothing_lost(document: Document, folder: Sequence[Document]) -> str | None:  # noqa: ARG001
    """Say nothing of a file that measured nothing."""
    return None


@dataclass(frozen=True, slots=True)
class Companion:
    """A kind of such file.

    Attributes:
        name: What it is, for a message.
        fits: Tells its files.
        why_alone: Says what is not beside a file, given all files of its folder.
    """

    name: str
    fits: Callable[[Document], bool]
    why_alone: Callable[[Document, Sequence[Document]], str | None] = _nothing_lost


COMPANIONS: Final = (
    Companion("a list for PyTorch's HUD", vllm_bench.is_for_hud, vllm_bench.why_alone),
    Companion("perf-eval's median of results beside it", vllm_bench.is_median),
    Companion("asv's description of a machine", asv.is_machine),
    Companion("asv's description of its benchmarks", asv.is_benchmarks),
    Companion("samples of lm-eval", lm_eval.is_samples, lm_eval.why_alone),
    Companion("requests of aiperf", aiperf.is_requests, aiperf.why_alone),
    Companion("inputs of aiperf", aiperf.is_inputs),
)


def companion_of(document: Document) -> Companion | None:
    """Name the kind of a file that only says something together with another one."""
    return next((one for one in COMPANIONS if one.fits(document)), None)
