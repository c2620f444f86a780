"""What a verb loads before it has work to do: heavy imports stay at the edge."""

import subprocess
import sys

import pytest

HEAVY = (
    "numpy",
    "scipy",
    "pandas",
    "pydantic",
    "rich",
    "streamlit",
    "plotly",
    "pyarrow",
    "lm_eval",
)


def loaded_by(*words: str) -> set[str]:
    code = (
        "import sys\n"
        "from hybridwatch.cli.main import cli\n"
        f"try: cli({list(words)!r}, prog_name='hybridwatch')\n"
        "except SystemExit: pass\n"
        "sys.stderr.write(' '.join(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "Usage" in done.stdout
    return {name.partition(".")[0] for name in done.stderr.split()}


def test_help_loads_nothing_heavy() -> None:
    assert loaded_by("--help").isdisjoint(HEAVY)


def test_the_probe_would_see_it() -> None:
    assert "scipy" in loaded_by("compare", "--help")


@pytest.mark.parametrize("verb", ["ingest", "export"])
def test_moving_files_needs_no_statistics(verb) -> None:
    assert {"scipy", "pandas", "streamlit", "pyarrow"}.isdisjoint(loaded_by(verb, "--help"))
