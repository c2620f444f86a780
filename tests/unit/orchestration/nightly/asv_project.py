"""A small project of asv with our plugin, for tests that call asv itself.

Its benchmarks hand out what ``VALUE`` says, and print what ``STATS`` says as a suite does.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asv.results import Results, iter_results

from hybridwatch.orchestration.nightly.suite import STATS_MARK

ROOT = Path(__file__).parents[4]
OURS = dict.fromkeys(("PYTHONPATH", "ASV_PYTHONPATH"), str(ROOT / "src"))
"""asv and its benchmarks, which it starts without ``PYTHONPATH``, take our source from here."""

PLUGIN = ".hybridwatch.orchestration.nightly.asv_plugin"
SMOKE, CURATED, NEVER = (f"{group}.one.One.track_ttft" for group in ("smoke", "curated", "fuzz"))

_BENCHMARKS = f"""
import os, sys

def _made(name, skipped):
    def track():
        if os.environ.get("STATS"):
            sys.stderr.write({STATS_MARK!r} + os.environ["STATS"] + "\\n")
        value = float(os.environ.get("VALUE", 1))
        return float("nan") if skipped else {{"samples": [value] * 9, "number": 1}}
    track.benchmark_name, track.unit, track.version = name, "seconds", "1"
    return track

track_a, track_b = _made({SMOKE!r}, False), _made({CURATED!r}, False)
track_c = _made({NEVER!r}, True)
"""
_ON_A_HOST = """
import platform, sys
host = platform.uname_result("Linux", sys.argv.pop(1), sys.argv.pop(1), "", "x86_64")
platform.uname = lambda: host
from asv.main import main
main()
"""


@dataclass(frozen=True)
class Project:
    """Where asv is called."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, **config: Any) -> "Project":
        """Make one; its plugin, its folders and whatever else can be said otherwise."""
        (folder / "benchmarks").mkdir(parents=True)
        (folder / "benchmarks" / "__init__.py").write_text(_BENCHMARKS)
        usual = {"version": 1, "project": "p", "repo": ".", "branches": ["main"],
                 "environment_type": "existing", "plugins": [PLUGIN],
                 "benchmark_dir": "benchmarks", "results_dir": "results"}  # fmt: skip
        (folder / "asv.conf.json").write_text(json.dumps({**usual, **config}))
        project = cls(folder)
        project.git("init", "--quiet", "--initial-branch=main")
        return project

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=n", "-c", "user.email=e@example.org")
        return subprocess.run(
            ["git", *who, *words], cwd=self.folder, check=True, capture_output=True, text=True
        ).stdout.strip()

    def commit(self) -> str:
        """Make a commit and give its hash."""
        self.git("commit", "--quiet", "--allow-empty", "--message=x")
        return self.git("rev-parse", "HEAD")

    def asv(self, *words: str, host: tuple[str, str] | None = None, **variables: str) -> str:
        """Call asv, maybe on a host with a name and a kernel of its own; give all that it said."""
        start = ["-m", "asv"] if host is None else ["-c", _ON_A_HOST, *host]
        done = subprocess.run(
            [sys.executable, *start, *words],
            cwd=self.folder, capture_output=True, text=True, check=False,
            env={**os.environ, "HOME": str(self.folder), "HYBRIDWATCH_HOME": str(ROOT),
                 **OURS, **variables},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def measure(self, commit: str, bench: str = "^smoke", **how: Any) -> str:
        """Run benchmarks for a commit in this environment."""
        words = ("run", "--python=same", "--set-commit-hash", commit, "--bench", bench)
        return self.asv(*words, **how)

    def results(self) -> list[Results]:
        return list(iter_results(str(self.folder / "results")))

    def published(self, name: str) -> Any:
        return json.loads((self.folder / "html" / f"{name}.json").read_text())

    def graphs(self, benchmark: str) -> Iterator[list[Any]]:
        """Give the curves of a benchmark on the site, each a list of points."""
        for path in (self.folder / "html" / "graphs").rglob(f"{benchmark}.json"):
            if "summary" not in path.parts:
                yield json.loads(path.read_text())
