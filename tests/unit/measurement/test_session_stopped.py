"""A session that was asked to stop records nothing about the engines that its stop has ended."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

SESSION = """
import os, signal, sys
from pathlib import Path
from hybridwatch.engines.builds import parse_label
from hybridwatch.errors import EngineError
from hybridwatch.measurement.session import Session, SessionRequest
from hybridwatch.system.stopping import stoppable
from hybridwatch.scenarios.load import load_scenario

class StoppedPool:
    def make_ready(self, side):
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            raise EngineError("no answer from the engine") from None

    def is_alive(self, side): return False
    def discard(self, side): pass

root = Path("scenarios")
scenario = load_scenario(root / "smoke" / "padded-graph-rows.toml", root)
sides = [parse_label("cpu-0.27.1")]
session = Session(SessionRequest(scenario, sides, Path("models"), print), Path(sys.argv[1]))
try:
    with stoppable():
        print(session._trials(StoppedPool(), session._plan[:1])[0].failure.reason)
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_trial_whose_engine_was_ended_by_request_is_no_failed_trial(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SESSION, str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 130, done.stderr
    assert "no answer" not in done.stdout
