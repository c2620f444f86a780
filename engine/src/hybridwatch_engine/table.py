"""``python -m hybridwatch_engine.table``: makes the tables in ``engine/README.md``.

One of fixes, one of the faults that can be planted.
"""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from hybridwatch_engine.fixes.fix import NOWHERE, Header
from hybridwatch_engine.fixes.registry import FIXES
from hybridwatch_engine.planted import FAULTS, Fault


def tables() -> dict[str, str]:
    """Every fix and every fault as a short Markdown section, between marks of their place."""
    return {
        "fixes": _table("fixes", (_fix(fix.header) for fix in FIXES.values())),
        "faults": _table("faults", map(_fault, FAULTS.values())),
    }


def _table(name: str, sections: Iterable[str]) -> str:
    begin, end = _marks(name)
    return "\n".join([begin, *sections, end])


def _marks(name: str) -> tuple[str, str]:
    made = f"{name}: made by python -m hybridwatch_engine.table README.md, do not edit"
    return f"<!-- {made} -->", f"<!-- end of {name} -->"


def _fix(header: Header) -> str:
    switch = {
        "live": "on a live engine",
        "start": "when the engine starts",
        "probe": "not yet; its presence is probed",
    }[header.switch]
    rows = {
        "target": header.target,
        "why": header.why,
        "how": header.how,
        "upstream": f"{header.upstream}, in {_releases(header)}",
        "switched": switch,
        "scenario": header.scenario,
        "remove when": header.remove_when,
    }
    return _section(header.id, rows)


def _fault(fault: Fault) -> str:
    return _section(fault.id, {"target": fault.target, "why": fault.why, "how": fault.how})


def _section(title: str, rows: Mapping[str, str]) -> str:
    body = "\n".join(f"| {name} | {text} |" for name, text in rows.items())
    return f"\n### {title}\n\n| | |\n|---|---|\n{body}\n"


def _releases(header: Header) -> str:
    if header.present_from == NOWHERE:
        return "no release yet"
    return f"releases from {header.present_from}"


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
