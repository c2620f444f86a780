"""The reports for vLLM in lab/docs/reports.md, as their tests read them."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "lab" / "docs" / "reports.md"


@dataclass(frozen=True, slots=True)
class Report:
    """One section of the page.

    Attributes:
        finding: Number of the finding; 0 if the section links none.
        script: What shows the fault; a folder if the section links none.
        shown: What the script prints on a release that has the fault.
    """

    title: str
    text: str
    finding: int
    script: Path
    shown: str


def read_reports(page: str) -> list[Report]:
    """Split the page into its reports."""
    return [_read(*section.split("\n", 1)) for section in re.split(r"^## ", page, flags=re.M)[1:]]


def _read(title: str, text: str) -> Report:
    finding = re.search(
        r"^Finding \[(\d+)\]\(\.\./\.\./docs/findings\.md(?:#\1-|\))", text, re.MULTILINE
    )
    script = re.search(r"^Script: \[(reports/\d+\.py)\]\(\1\)", text, re.MULTILINE)
    shown = re.search(r"^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return Report(
        title,
        text,
        int(finding[1]) if finding else 0,
        PAGE.parent / (script[1] if script else ""),
        shown[1] if shown else "",
    )
