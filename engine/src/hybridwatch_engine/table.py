"""``python -m hybridwatch_engine.table``: makes the table of fixes in ``engine/README.md``."""

import sys
from pathlib import Path

from hybridwatch_engine.fixes.fix import NOWHERE, Header
from hybridwatch_engine.fixes.registry import FIXES

BEGIN = "<!-- fixes: made by python -m hybridwatch_engine.table README.md, do not edit -->"
END = "<!-- end of fixes -->"


def render() -> str:
    """Every fix as a short Markdown section."""
    return "\n".join([BEGIN, *(_section(fix.header) for fix in FIXES.values()), END])


def _section(header: Header) -> str:
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
    body = "\n".join(f"| {name} | {text} |" for name, text in rows.items())
    return f"\n### {header.id}\n\n| | |\n|---|---|\n{body}\n"


def _releases(header: Header) -> str:
    if header.present_from == NOWHERE:
        return "no release yet"
    return f"releases from {header.present_from}"


def replaced(text: str) -> str:
    """A README with its table made anew.

    Raises:
        ValueError: The README has no place for the table.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the README lacks the lines {BEGIN!r} and {END!r}")
    return before + render() + after


def main(arguments: list[str]) -> int:
    """Rewrite the README named on the command line, or print the table."""
    if not arguments:
        sys.stdout.write(render() + "\n")
        return 0
    path = Path(arguments[0])
    path.write_text(replaced(path.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
