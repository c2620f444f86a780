"""Runs the check; the exit status is 1 when a limit is not kept."""

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout


def main(arguments: Sequence[str]) -> int:
    """Draw cases, run them, say how far off they are."""
    parser = argparse.ArgumentParser(prog="python -m hybridwatch_engine_lab.studies.kernels")
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--interpreted", type=int, default=60, help="cases run by Triton as well")
    parser.add_argument("--defect", help="plant one, to see that it is found")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    with redirect_stdout(sys.stderr):  # vLLM talks on standard output
        from hybridwatch_engine_lab.studies.kernels.checking import check

        report = check(options.cases, options.seed, options.interpreted, options.defect)
    text = json.dumps(report.to_json()) if options.json else report.to_text()
    sys.stdout.write(text + "\n")
    return int(not report.ok)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
