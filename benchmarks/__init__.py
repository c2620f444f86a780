"""asv suites: a class per scenario, made from the files in ``scenarios/``.

``hybridwatch.orchestration.nightly`` does the work.
"""

import os
from pathlib import Path

_CHECKOUT = Path(__file__).parents[1]
_ADOPTED = Path(os.environ.get("ASV_ENV_DIR", _CHECKOUT)) / "home"

# asv runs benchmarks in folders of its own, maybe with an installed hybridwatch, maybe with an
# environment that is the engine itself (`hybridwatch engine adopt`, ci/asv.vllm.conf.json).
os.environ.setdefault("HYBRIDWATCH_HOME", str(_ADOPTED if _ADOPTED.is_dir() else _CHECKOUT))
