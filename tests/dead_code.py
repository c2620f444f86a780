"""Code that nobody uses: ``python -m tests.dead_code``, as part of ``make check``.

Vulture finds names that no source file of ours mentions. What is reached by its name alone (a
Streamlit page, a method that vLLM calls) is listed here with who reaches it; an entry that is not
needed any more is reported too, so that the list never grows by itself.

Only functions, methods, classes, properties and unreachable lines are looked at: fields of
dataclasses are written out as a whole, and vulture takes each of them for unused. Imports are
ruff's.
"""

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from vulture import Vulture

ROOT: Final = Path(__file__).parents[1]
SOURCES: Final = ("src", "engine/src", "lab/src", "lab/engine", "dashboard", "benchmarks")
REFERENCE: Final = re.compile(r'"hybridwatch_engine(?:_lab)?(?:\.\w+)+:(\w+)"')
"""How a fix names the function that shows it at work, which is loaded by that name."""
KINDS: Final = frozenset({"class", "function", "method", "property", "unreachable_code"})
DECORATORS: Final = [
    *("@*.command", "@*.group", "@verb", "@verb_group", "@rule", "@stands_in_for"),
    *("@field_validator", "@model_serializer", "@model_validator"),
]
"""Click, pydantic, hypothesis and our own kernels keep what they decorate and call it."""

EXPECTED: Final[Mapping[str, str]] = {
    "WorkerControl": "named to vLLM as the worker's extension class",
    "hybridwatch_*": "called by name through vLLM's collective RPC",
    "register": "the plugin's entry point",
    "EmptyConnector": "named to vLLM as a KV connector",
    "KeepingConnector": "named to vLLM as a KV connector",
    "register_kv_caches": "vLLM's interface of a KV connector",
    "reset_cache": "vLLM's interface of a KV connector",
    "get_num_new_matched_tokens": "vLLM's interface of a KV connector",
    "update_state_after_alloc": "vLLM's interface of a KV connector",
    "build_connector_meta": "vLLM's interface of a KV connector",
    "request_finished_all_groups": "vLLM's interface of a KV connector",
    "start_load_kv": "vLLM's interface of a KV connector",
    "wait_for_layer_load": "vLLM's interface of a KV connector",
    "save_kv_layer": "vLLM's interface of a KV connector",
    "wait_for_save": "vLLM's interface of a KV connector",
    "get_metadata_builder": "vLLM's method, in an exercise's stand-in",
    "get_cached_block": "vLLM's method, in an exercise's stand-in",
    "is_active": "Triton's driver interface",
    "get_current_target": "Triton's driver interface",
    "get_active_torch_device": "Triton's driver interface",
    "map_python_to_cpp_type": "Triton's driver interface",
    "get_benchmarker": "Triton's driver interface",
    "show_*": "a screen, which the list of screens names",
    "list_commands": "click calls it",
    "get_command": "click calls it",
    "format_commands": "click calls it",
    "on_broken_pipe": "rich calls it",
    "handle_starttag": "html's parser calls it",
    "writable": "io's interface of a raw stream",
    "seekable": "io's interface of a raw stream",
    "readinto": "io's interface of a raw stream",
    "MeasuredPublisher": "asv takes every class of its publishers",
    "teardown": "hypothesis ends a story with it",
    "process_bind_param": "SQLAlchemy calls it",
    "process_result_value": "SQLAlchemy calls it",
    "run_href": "a template of a page calls it",
    "add_file": "programs elsewhere add records with it",
}
"""Who reaches what is not mentioned: a name, or its beginning with ``*``."""


def unused(sources: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Yield each name that none of these files or folders mentions, with where it stands."""
    everything = list(sources)
    finder = Vulture(ignore_names=list(referenced(everything)), ignore_decorators=DECORATORS)
    finder.scavenge([str(source) for source in everything])
    for item in finder.get_unused_code():
        if item.typ in KINDS:
            place = Path(item.filename)
            shown = place.relative_to(ROOT) if place.is_relative_to(ROOT) else place
            yield item.name, f"{shown}:{item.first_lineno}: unused {item.typ} {item.name!r}"


def referenced(sources: Iterable[Path]) -> Iterator[str]:
    """Yield each name that a string gives as ``module:name``, or a mutant's table as ``by``."""
    for source in sources:
        for file in sorted(source.rglob("*.py")):
            yield from REFERENCE.findall(file.read_text(encoding="utf-8"))
        for file in sorted(source.rglob("mutants/*.toml")):
            mutants = tomllib.loads(file.read_text(encoding="utf-8"))["mutant"].values()
            yield from (mutant["by"].rpartition(".")[2] for mutant in mutants)


def matches(name: str, entry: str) -> bool:
    """Whether an entry of the list is about a name."""
    return name.startswith(entry[:-1]) if entry.endswith("*") else name == entry


def complaints(found: Iterable[tuple[str, str]], expected: Iterable[str]) -> list[str]:
    """Say what is unused and not expected, and which expectations are not needed."""
    entries, needed, lines = list(expected), set[str](), []
    for name, line in found:
        if fitting := [entry for entry in entries if matches(name, entry)]:
            needed.update(fitting)
        else:
            lines.append(line)
    idle = [entry for entry in entries if entry not in needed]
    return [*lines, *(f"tests/dead_code.py: nothing needs the entry {entry!r}" for entry in idle)]


def main() -> int:
    """Print the complaints; the status is 1 if there are any."""
    lines = complaints(unused(ROOT / source for source in SOURCES), EXPECTED)
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
