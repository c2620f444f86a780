"""The plan of the house names every package, in the order in which they may import."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CHANGES = (ROOT / "lab" / "docs" / "testing.md").read_text(encoding="utf-8")
CHANGES = CHANGES.partition("## What a change touches")[2].partition("\n## ")[0]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"]


def layers() -> list[list[str]]:
    """From the bottom up, siblings together."""
    (contract,) = [one for one in CONTRACTS if one.get("containers") == ["hybridwatch"]]
    return [line.split(" | ") for line in reversed(contract["layers"]) if line != "__main__"]


def test_the_table_has_every_package_in_the_order_of_the_layers() -> None:
    table = PAGE.partition("## Packages")[2].partition("\n## ")[0]
    named = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    order = {package: number for number, group in enumerate(layers()) for package in group}
    assert sorted(named) == sorted(order)
    assert [order[package] for package in named] == sorted(order.values())


def test_every_path_that_the_plan_names_is_there() -> None:
    named = {
        word
        for word in re.findall(r"`([\w./-]+/[\w./-]*)`", PAGE + CHANGES)
        if not word.startswith((".engines", "results", "scenarios/GROUP"))
    }
    package = ROOT / "src/hybridwatch"
    places = (ROOT, ROOT / "src", package, *package.iterdir(), ROOT / "engine/src")
    missing = [word for word in named if not any((place / word).exists() for place in places)]
    assert missing == []
    assert len(named) >= 15
