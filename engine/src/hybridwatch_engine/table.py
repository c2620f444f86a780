"""``python -m hybridwatch_engine.table``: makes the tables in ``engine/README.md``.

One of fixes, one of the faults that can be planted.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from hybridwatch_engine.fixes.fix import NOWHERE, Header
from hybridwatch_engine.fixes.registry import FIXES
from hybridwatch_engine.planted import FAULTS, Fault


def tables() -> dict[str, str]:
    """Every fix and every fault as a row of a Markdown table, between marks of their place."""
    return {
        "fixes": _table("fixes", ("fix", "does", "upstream", "scenario"), map(_fix, _headers())),
        "faults": _table("faults", ("fault", "does"), map(_fault, FAULTS.values())),
    }


def _headers() -> Iterator[Header]:
    return (fix.header for fix in FIXES.values())


def _table(name: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    begin, end = _marks(name)
    lines = (f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows))
    return "\n".join([begin, "", *lines, "", end])


def _marks(name: str) -> tuple[str, str]:
    made = f"{name}: made by python -m hybridwatch_engine.table README.md, do not edit"
    return f"<!-- {made} -->", f"<!-- end of {name} -->"


def _fix(header: Header) -> tuple[str, ...]:
    upstream = f"{header.upstream.removeprefix('vllm: ')}; {_releases(header)}"
    return f"`{header.id}`", header.how, upstream, header.scenario


def _fault(fault: Fault) -> tuple[str, ...]:
    return f"`+{fault.id}`", fault.how


def _releases(header: Header) -> str:
    return "no release" if header.present_from == NOWHERE else f"from {header.present_from}"


def replaced(text: str) -> str:
    """A README with its tables made again."""
    for name, table in tables().items():
        marks = _marks(name)
        before, begin, rest = text.partition(marks[0])
        _, end, after = rest.partition(marks[1])
        if not begin or not end:
            raise ValueError(f"the README lacks the lines {marks[0]!r} and {marks[1]!r}")
        text = before + table + after
    return text


def main(arguments: list[str]) -> int:
    """Rewrite the README named on the command line, or print the tables."""
    if not arguments:
        sys.stdout.write("\n\n".join(tables().values()) + "\n")
        return 0
    path = Path(arguments[0])
    path.write_text(replaced(path.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
