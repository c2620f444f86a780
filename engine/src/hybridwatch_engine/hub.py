"""``python -m hybridwatch_engine.hub NAME [REVISION]``: a model of the hub, on this machine's disk.

The harness asks here because an engine's environment has the hub's client anyway. What is there
already is not downloaded again. Answers one JSON object on standard output: ``path`` and
``revision``, the commit; or ``error``, why there is nothing. Progress goes to standard error.
"""

import json
import sys
from pathlib import Path
from typing import Final

_UNUSED: Final = ("original/*", "*.gguf", "*.pth", "*.onnx", "*.msgpack", "*.h5")
"""The same weights in forms that vLLM does not read."""


def fetch(name: str, revision: str | None) -> dict[str, str]:
    """Have a model's files here.

    Args:
        name: ``owner/name``.
        revision: A commit, tag or branch; None for the main branch.
    """
    from huggingface_hub import snapshot_download

    try:
        path = snapshot_download(name, revision=revision, ignore_patterns=list(_UNUSED))
    except Exception as error:  # noqa: BLE001 - the caller shows one line of it
        first = next((line for line in str(error).splitlines() if line.strip()), "")
        return {"error": f"{type(error).__name__}: {first.strip()}".rstrip(": ")}
    # The hub's client names the folder of a snapshot after its commit.
    return {"path": path, "revision": Path(path).name}


def main(name: str, revision: str = "") -> int:
    """Fetch the model, and print its path or the error."""
    sys.stdout.write(json.dumps(fetch(name, revision or None)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
