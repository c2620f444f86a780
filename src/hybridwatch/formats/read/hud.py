"""Lists for PyTorch's HUD, version 3, of vLLM alone (0.27.1, ``vllm/benchmarks/lib/utils.py``).

vLLM writes one, ``*.pytorch.json``, next to a result: a record for each metric, each with all else
that the result says in ``extra_info``. Put together they are that result again, but its requests.
Where ``extra_info`` was taken out, the times are left. Beside the result a list is not read again.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

from hybridwatch.errors import IngestError
from hybridwatch.formats.read import vllm_bench
from hybridwatch.formats.read.foreign import DocumentNode, ForeignDocument, ForeignRun, short
from hybridwatch.formats.read.untimed import build_untimed

_SUFFIX: Final = ".pytorch"
_READERS: Final = (
    (vllm_bench.is_serve, vllm_bench.read_serve),
    (vllm_bench.is_throughput, vllm_bench.read_throughput),
    (vllm_bench.is_latency, vllm_bench.read_latency),
)
_LATENCY: Final = "latency"
"""The metric of ``vllm bench latency``, which its result calls ``latencies``."""
_NO_LOAD: Final = {"result_dir", "result_filename", "output_json", "label", "metadata"}
"""Arguments of vLLM's clients that say where a result goes and what it is called."""


def is_records(document: ForeignDocument) -> bool:
    """Whether this is such a list."""
    first = next(document.rows, DocumentNode(None))
    return all(key in first for key in ("benchmark", "model", "metric"))


def is_repeated(document: ForeignDocument) -> bool:
    """Whether the result that such a list repeats lies next to it."""
    name = document.path.stem.removesuffix(_SUFFIX)
    names = {f"{name}.json", f"{name}.jsonl"} - {document.path.name}
    folder = document.path.parent
    return is_records(document) and any((folder / one).is_file() for one in names)


def read_records(document: ForeignDocument) -> Iterator[ForeignRun]:
    """Read the result that the records of one model and one call make together."""
    for _, group in groupby(document.rows, key=_call):
        records = list(group)
        whole = ForeignDocument(document.path, document.raw, (_join(records),))
        workload = _workload(records[0])
        read = next((read for fits, read in _READERS if fits(whole)), None)
        if read is None:
            yield _read_times(whole, workload)
        elif read is vllm_bench.read_serve:
            yield from read(whole)
        else:  # these results have no model
            for run in read(whole):
                asked = {**workload, "requests": run.workload}
                yield replace(run, scenario=f"{run.scenario}/{workload['model']}", workload=asked)


def _workload(record: DocumentNode) -> dict[str, Any]:
    info = record.at("benchmark").value.get("extra_info") or {}
    args = {key: one for key, one in (info.get("args") or {}).items() if key not in _NO_LOAD}
    return {"model": short(record.at("model", "name").text()), "args": args}


def _call(record: DocumentNode) -> str:
    return f"{record.at('model').value} {record.at('benchmark').value}"


def _join(records: list[DocumentNode]) -> DocumentNode:
    result: dict[str, Any] = {}
    for record in records:
        metric = record.at("metric")
        name, values = metric.at("name").text(), metric.at("benchmark_values")
        result |= metric.value.get("extra_info") or {}
        is_latency = name == _LATENCY
        result |= {"latencies": values.value} if is_latency else {name: values.first("value").value}
    return DocumentNode(result)


def _read_times(document: ForeignDocument, workload: dict[str, Any]) -> ForeignRun:
    samples = vllm_bench.read_statistics(document.root)
    if not samples:
        wanted = "metrics that vLLM writes, such as median_ttft_ms, and extra_info with the rest"
        raise IngestError(f"metric.name: expected {wanted}, found {', '.join(document.root.value)}")
    return build_untimed(document, "hud", workload, [(0.0, samples)])
