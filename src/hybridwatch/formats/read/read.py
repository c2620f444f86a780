"""Which format a file is in, recognized by its content, and the runs it holds.

``FORMATS`` is the list: a format knows its own files. Those that only say something together with
another one are named when that is not with them: left out in silence, they would pass for taken.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from hybridwatch.errors import IngestError, RecordError
from hybridwatch.formats.read import (
    aiperf,
    asv,
    benchmarks,
    guidellm,
    inference_perf,
    inferencex,
    llmperf,
    lm_eval,
    vllm_bench,
)
from hybridwatch.formats.read.agreement import check_record
from hybridwatch.formats.read.document import (
    LARGEST_COMPANION,
    LIKELY,
    ForeignDocument,
    read_folder,
)
from hybridwatch.formats.read.foreign import ForeignInput, ForeignRun, build_run
from hybridwatch.records.codec import Encoded, decode_record
from hybridwatch.records.fields import MOST_RECORD_BYTES
from hybridwatch.records.file_parts import BULK_SUFFIX, build_stem
from hybridwatch.records.run import Run
from hybridwatch.system.home import loaded

_SHOWN: Final = 40
_Test = Callable[[ForeignDocument], bool]
_VERSIONS: Final[Mapping[str, Callable[[ForeignDocument], str | None]]] = {
    "guidellm": guidellm.parse_version,
    "aiperf": aiperf.parse_version,
}
"""Tools whose files changed with nearly every release; a refusal names the one that wrote it."""


def read_own(raw: bytes, read_bulk: Callable[[str], bytes]) -> tuple[Run, Encoded]:
    """Read a record, and keep its bytes: what is added to the store is what was checked.

    The run has what its scores were checked against. ``read_bulk`` gives the bytes of the file next
    to the record, by its name; it is called only where there is one.
    """
    if len(raw) > MOST_RECORD_BYTES:
        raise RecordError(f"expected at most {MOST_RECORD_BYTES} bytes, found {len(raw)}")
    beside: dict[str, bytes] = {}

    def read(name: str) -> bytes:
        beside[name] = read_bulk(name)
        return beside[name]

    run = decode_record(raw).scored(read)
    check_record(run)
    stem = build_stem(run)
    for name in beside:
        if name != stem + BULK_SUFFIX:
            raise RecordError(f"bulk.file: expected {stem + BULK_SUFFIX}, found {name}")
    return run, Encoded(stem, raw, next(iter(beside.values()), None))


@dataclass(frozen=True, slots=True)
class Companion:
    """A kind of such file; one without ``why_alone``, which says what is missing, measured none."""

    name: str
    fits: _Test
    why_alone: Callable[[ForeignDocument, Sequence[ForeignDocument]], str | None] | None = None


COMPANIONS: Final = (
    Companion("a list for PyTorch's HUD", vllm_bench.is_repeated),
    Companion("perf-eval's median of results next to it", vllm_bench.is_median),
    Companion("a summary of vllm bench sweep, whose results lie next to it", vllm_bench.is_summary),
    Companion("asv's description of a machine", asv.is_machine),
    Companion("asv's description of its benchmarks", asv.is_benchmarks),
    Companion("samples of lm-eval", lm_eval.is_samples, lm_eval.why_alone),
    Companion("requests of aiperf", aiperf.is_requests, aiperf.why_alone),
    Companion("inputs of aiperf", aiperf.is_inputs),
    Companion("a part of genai-perf's run", aiperf.is_genai_part, aiperf.why_genai_alone),
    Companion("a part of inference-perf's run", inference_perf.is_part, inference_perf.why_alone),
    Companion("requests of LLMPerf", llmperf.is_responses, llmperf.why_alone),
)


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file."""

    name: str
    fits: _Test
    read: Callable[[ForeignDocument], Iterator[ForeignRun]]


FORMATS: Final = (
    Format("asv", asv.is_results, asv.read_results),
    Format("sglang", vllm_bench.is_sglang, vllm_bench.read_sglang),
    Format("vllm-bench-serve", vllm_bench.is_serve, vllm_bench.read_serve),
    Format("vllm-bench-throughput", vllm_bench.is_throughput, vllm_bench.read_throughput),
    Format("vllm-bench-latency", vllm_bench.is_latency, vllm_bench.read_latency),
    Format("lm-eval", lm_eval.is_results, lm_eval.read_results),
    Format("guidellm", guidellm.is_report, guidellm.read_report),
    Format("genai-perf", aiperf.is_genai_report, aiperf.read_genai_report),
    Format("aiperf", aiperf.is_report, aiperf.read_report),
    Format("inference-perf", inference_perf.is_report, inference_perf.read_report),
    Format("llmperf", llmperf.is_summary, llmperf.read_summary),
    Format("inferencex", inferencex.is_rows, inferencex.read_rows),
    Format("hud", vllm_bench.is_hud, vllm_bench.read_hud),
    Format("pytest-benchmark", benchmarks.is_pytest, benchmarks.read_pytest),
    Format("google-benchmark", benchmarks.is_google, benchmarks.read_google),
    Format("github-action-benchmark", benchmarks.is_github_action, benchmarks.read_github_action),
    Format("bencher", benchmarks.is_bencher, benchmarks.read_bencher),
)


@cache
def list_formats() -> tuple[Format, ...]:
    """List ours, and behind them what entry points of the group ``hybridwatch.formats`` name."""
    return (*FORMATS, *loaded("hybridwatch.formats").values())


def describe_known() -> str:
    """Say what is looked for."""
    return "a record or a file of " + ", ".join(one.name for one in list_formats())


def companion(document: ForeignDocument) -> str | None:
    """Name what a file is that only says something together with another one.

    If it holds measurements, that other one has to be next to it and take them.
    """
    kind = next((one for one in COMPANIONS if one.fits(document)), None)
    if kind is None:
        return None
    if len(document.raw) > LARGEST_COMPANION:
        raise IngestError(
            f"{kind.name}: expected at most {LARGEST_COMPANION} bytes, found {len(document.raw)}"
        )
    if kind.why_alone is not None:
        with _as_expected(kind.name):
            alone = kind.why_alone(document, read_folder(document.path.parent))
        if alone is not None:
            raise IngestError(f"{kind.name}: {alone}")
    return kind.name


def read_foreign(document: ForeignDocument, given: ForeignInput) -> list[Run]:
    """Read the runs of another tool's file; an error is one line, which may name the version."""
    try:
        return _read(document, given)
    except IngestError as error:
        versions = ((name, version(document)) for name, version in _VERSIONS.items())
        wrote = next((f"{name} {version}" for name, version in versions if version), None)
        if wrote is None or wrote in str(error):
            raise
        raise IngestError(f"{error} (written by {wrote})") from error


def _read(document: ForeignDocument, given: ForeignInput) -> list[Run]:
    one = next((one for one in list_formats() if one.fits(document)), None)
    if one is None:
        raise IngestError(f"expected {describe_known()}, found {_shown(document.nodes[0].value)}")
    with _as_expected(f"what {one.name} writes"):
        return [build_run(document, one.name, found, given) for found in one.read(document)]


@contextmanager
def _as_expected(what: str) -> Iterator[None]:
    """Turn what no check of its own looks for, such as one level of nesting more, into a line."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise IngestError(f"expected {what}: {error!r}") from error


def candidates(folder: Path) -> Iterator[Path]:
    """Name the files of a folder, and of all folders in it, that may hold something to ingest.

    Hidden ones may not, nor those that are neither named like JSON nor begin like it; but a
    project of asv may have its results in a hidden folder.
    """
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or _is_hidden(path, folder):
            continue
        if path.suffix in LIKELY or _begins_like_json(path):
            yield path
        if asv.is_configuration(path):
            results, root = asv.find_results(path), folder.resolve()
            if results.resolve().is_relative_to(root) and _is_hidden(results.resolve(), root):
                yield from candidates(results)


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _begins_like_json(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip().startswith((b"{", b"["))
    except OSError:
        return False


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        keys = ", ".join(repr(key[:_SHOWN]) for key in list(value)[:5])
        return f"an object with the keys {keys}" if keys else "an empty object"
    return f"a {type(value).__name__}"
