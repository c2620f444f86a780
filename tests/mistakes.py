"""What is wrong in a file and what is said of it, as it was reviewed: ``golden/mistakes``."""

from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parent / "golden" / "mistakes"


def read_mistakes(name: str, **known: str) -> list[Any]:
    r"""Read cases for a test, a line each: cells apart by ``=>``, the last one what is said.

    ``\n`` ends a line within a cell, ``{NAME}`` stands for what is known under it, and a line that
    begins with ``# `` is a remark.
    """
    text = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8").replace("\\n", "\v")
    for key, value in known.items():
        text = text.replace(f"{{{key}}}", value.replace("\n", "\v"))
    lines = [line for line in text.split("\n") if line and not line.startswith("# ")]
    rows = [line.replace("\v", "\n").split(" => ") for line in lines]
    return [pytest.param(*row, id=row[-1][:60]) for row in rows]
