"""Result files of asv, version 1 (until asv 0.4, 2019), put into the words of version 2.

A result was a number, or an object with ``result``, ``params``, ``stats`` and ``samples``; when it
began and ended and of which version the benchmark was stood beside all results.
"""

from typing import Any, Final

from hybridwatch.formats.read.document import Node
from hybridwatch.records.run import UNKNOWN

VERSION: Final = 1
_COLUMNS: Final = ("result", "params", "version", "started_at", "duration", "samples")


def is_first(root: Node) -> bool:
    """Whether this is a result file of version 1."""
    return root.value.get("version") == VERSION and all(
        key in root for key in ("commit_hash", "date", "params", "python", "results")
    )


def upgrade(root: Node) -> Node:
    """Put a file into the words of version 2.

    Raises:
        IngestError: A result is neither a number, nor null, nor an object that holds one.
    """
    rows = {name: _row(root, name, result) for name, result in root.at("results").items()}
    return Node(
        root.value
        | {
            "version": 2,
            "env_name": root.value.get("env_name") or _environment(root),
            "result_columns": list(_COLUMNS),
            "results": rows,
        }
    )


def _row(root: Node, name: str, result: Node) -> list[Any]:
    cell_table = result.value if isinstance(result.value, dict) else {"result": result.value}
    if "result" not in cell_table:
        raise result.wrong("a result")
    cells = cell_table["result"]
    began = _beside(root, "started_at", name)
    return [
        cells if isinstance(cells, list) else [cells],
        cell_table.get("params") or [],
        _beside(root, "benchmark_version", name),
        began,
        _seconds(root, name, began),
        cell_table.get("samples"),
    ]


def _seconds(root: Node, name: str, began: Any) -> Any:
    ended = _beside(root, "ended_at", name)
    if ended is None or began is None:
        return _beside(root, "duration", name)
    times = (Node(ended, f"ended_at.{name}"), Node(began, f"started_at.{name}"))
    return (times[0].number() - times[1].number()) / 1000  # milliseconds


def _beside(root: Node, key: str, name: str) -> Any:
    return root.at(key).value.get(name) if key in root else None


def _environment(root: Node) -> str:
    """Name the environment as asv named its files then."""
    needed = root.value.get("requirements") or {}
    parts = [f"{name}{version or ''}" for name, version in sorted(needed.items())]
    return "-".join([f"py{root.at('python').text()}", *parts]) if parts else UNKNOWN
