"""Where the checkout has what tests read: what is shipped, what was measured, others' files."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
SCENARIOS = ROOT / "scenarios"
RESULTS = ROOT / "results"
FOREIGN = ROOT / "tests" / "fixtures" / "foreign"
