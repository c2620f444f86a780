"""The workload in a report of guidellm: each of its forms keeps that elsewhere.

==========  ==========================================================================
0.7 on      ``config.spec``, one for all benchmarks
0.4 to 0.6  ``args``, one for all, and ``config`` of each benchmark
0.2, 0.3    ``args``, ``worker`` and ``request_loader`` of each benchmark
==========  ==========================================================================
"""

from typing import Any, Final

from hybridwatch.errors import IngestError
from hybridwatch.formats.read.document import Node
from hybridwatch.formats.read.foreign import short
from hybridwatch.records.run import UNKNOWN

_NEWEST_FORM: Final = 2
"""``metadata.version`` from 0.7 on."""
_STRATEGY: Final = ("type_", "streams", "rate")


def is_old(root: Node) -> bool:
    """Whether this is a report of a guidellm that did not write its version yet."""
    listed = root.value.get("benchmarks") if isinstance(root.value, dict) else None
    first = Node(listed[0] if isinstance(listed, list) and listed else None)
    return is_first(first) or ("metrics" in first and ("config" in first or "worker" in first))


def is_first(benchmark: Node) -> bool:
    """Whether this is a benchmark as guidellm 0.1 writes it."""
    return all(key in benchmark for key in ("mode", "results", "concurrencies"))


def version_of(root: Node) -> str:
    """Name the guidellm that wrote a report, where that can be known."""
    if "metadata" in root:
        return root.at("metadata", "guidellm_version").text()
    return "0.4" if "args" in root else "0.2 or 0.3"


def load_of(root: Node, benchmark: Node) -> dict[str, Any]:
    """Give the workload that an engine had.

    Raises:
        IngestError: The report is of a form that is not known; says of which version it is.
    """
    if "config" in root or _form_of(root) == _NEWEST_FORM:
        return _since_0_7(root, benchmark)
    if "args" in root and "config" in benchmark:
        return _since_0_4(root, benchmark)
    if "worker" in benchmark and "request_loader" in benchmark:
        return _since_0_2(benchmark)
    if is_first(benchmark):
        raise IngestError(
            "benchmarks: this report is of guidellm 0.1 and has neither totals nor a measured "
            "time: expected one of 0.2 or later"
        )
    raise benchmark.wrong(f"what was asked, as guidellm 0.2 to 0.8 tell it, in {version_of(root)}")


def _form_of(root: Node) -> Any:
    return root.at("metadata").value.get("version") if "metadata" in root else None


def _since_0_7(root: Node, benchmark: Node) -> dict[str, Any]:
    spec = root.at("config", "spec")
    strategy = benchmark.at("config", "strategy").value
    data = [_without_folder(item.value) for item in spec.at("data").each()]
    return {
        "model": short(str(spec.at("backend").value.get("model") or UNKNOWN)),
        "endpoint": spec.at("backend").value.get("request_format"),
        "strategy": {key: strategy.get(key) for key in _STRATEGY},
        "constraints": spec.value.get("constraints"),
        "data": data,
        "seed": spec.value.get("seed"),
    }


def _since_0_4(root: Node, benchmark: Node) -> dict[str, Any]:
    args, config = root.at("args").value, benchmark.at("config")
    strategy = config.at("strategy").value
    backend = config.value.get("backend") or {}
    limits = ("max_seconds", "max_requests", "max_errors", "warmup", "cooldown", "rampup")
    return {
        "model": short(str(args.get("model") or backend.get("model") or UNKNOWN)),
        "endpoint": args.get("request_format"),
        "strategy": {key: strategy.get(key) for key in (*_STRATEGY, "max_concurrency")},
        "constraints": {key: args.get(key) for key in limits},
        "data": [_shown(item) for item in args.get("data") or ()],
        "seed": args.get("random_seed"),
    }


def _since_0_2(benchmark: Node) -> dict[str, Any]:
    args, loader = benchmark.at("args"), benchmark.at("request_loader").value
    strategy = args.at("strategy").value
    limits = ("number", "duration")
    return {
        "model": short(str(benchmark.at("worker").value.get("backend_model") or UNKNOWN)),
        "endpoint": None,
        "strategy": {key: strategy.get(key) for key in (*_STRATEGY, "max_concurrency")},
        "constraints": {
            f"{word}_{limit}": args.value.get(f"{word}_{limit}")
            for word in ("max", "warmup", "cooldown")
            for limit in limits
        },
        "data": [_shown(loader.get("data")), loader.get("data_args")],
        "seed": (args.value.get("profile") or {}).get("random_seed"),
    }


def _without_folder(value: Any) -> Any:
    return {
        key: short(item) if isinstance(item, str) else item
        for key, item in (value.items() if isinstance(value, dict) else ())
    }


def _shown(value: Any) -> Any:
    return short(value) if isinstance(value, str) else _without_folder(value)
