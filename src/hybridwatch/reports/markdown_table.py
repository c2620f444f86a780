"""A table of texts in Markdown."""

from collections.abc import Iterable, Sequence


def table_of(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table in Markdown; its texts are escaped already."""
    ruler = "|".join("-" for _ in heads)
    lines = [" | ".join(heads), *(" | ".join(row) for row in rows)]
    return "\n".join([f"| {lines[0]} |", f"|{ruler}|", *(f"| {line} |" for line in lines[1:])])
