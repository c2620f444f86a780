"""Runs a module in another Python, such as an engine's, and gives back what it prints."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from hybridwatch.errors import BuildError

_END: Final = 10
"""Lines of an error that are shown."""
_NO_VARIABLES: Final[Mapping[str, str]] = {}


def output_of(
    python: Path,
    words: Sequence[str],
    who: str,
    limit_s: float,
    *,
    given: str = "",
    variables: Mapping[str, str] = _NO_VARIABLES,
) -> str:
    """Run a module to its end.

    Args:
        python: The interpreter.
        words: The module and its arguments.
        who: Whose answer this is, as a message begins.
        limit_s: Seconds that it may take.
        given: Its standard input.
        variables: Of its environment, beside ours.

    Raises:
        BuildError: It does not start, gives no answer in time, or ends with an error; then with
            the last lines of that.
    """
    # The harness's own paths must not reach into the engine's world.
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(
            [str(python), "-m", *words],
            env={**ours, **variables},
            input=given,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BuildError(f"{who} gave no answer in {limit_s:g} s") from None
    except OSError as error:
        raise BuildError(f"{who} cannot be asked: {error}") from None
    if done.returncode != 0:
        tail = "\n".join(done.stderr.splitlines()[-_END:])
        raise BuildError(f"{who} ended with status {done.returncode}:\n{tail}")
    return done.stdout
