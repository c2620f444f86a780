"""vLLM's own serving benchmark client, kept running so that a trial does not pay for its import.

Reads one JSON list of command-line arguments per line on standard input, runs the client with
them, and answers one JSON line on standard output: ``{"ok": true}`` or ``{"ok": false, "error":
...}``. What vLLM and the client print goes to standard error. The measurement is the client's, in
the file that ``--result-filename`` names.
"""

import json
import os
import sys
import traceback
from typing import Any


def _run(parser: Any, serve: Any, line: str) -> dict[str, Any]:
    try:
        serve.main(parser.parse_args(json.loads(line)))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - reported; the process serves on
        traceback.print_exc()
        return {"ok": False, "error": f"{type(error).__name__}: {error}"}
    return {"ok": True}


def main() -> None:
    """Serve until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # vLLM logs to standard output as soon as it is imported
    from vllm.benchmarks import serve
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = FlexibleArgumentParser()
    serve.add_cli_args(parser)
    answers.write(json.dumps({"ok": True}) + "\n")
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(_run(parser, serve, line)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
