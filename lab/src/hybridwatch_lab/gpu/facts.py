"""Facts of this machine and a build: driver, clocks, imports, fixes, and an engine that answers."""

import json
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import psutil

from hybridwatch.engines.builds import BuildRequest
from hybridwatch.engines.check import check_build
from hybridwatch.engines.fitting import cuda_numbers
from hybridwatch.errors import BuildError, HybridwatchError
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.machine_state import Gpus
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system import nvidia
from hybridwatch.system.home import foreign_environment
from hybridwatch.system.python_command import python_command

_IMPORT_S: Final = 60.0
_ANSWER_S: Final = 60.0
_MODULES: Final = ("torch", "triton", "transformers", "vllm", "hybridwatch_engine")
_KERNELS: Final = "vllm._C|vllm._C_stable_libtorch"
"""vLLM's compiled kernels; 0.24.0 has all of them under the second name."""
_IMPORTING: Final = """
import importlib, json, sys, time
from importlib.util import find_spec
for name in sys.argv[1:]:
    began = time.perf_counter()
    try:
        *others, last = name.split("|")
        module = importlib.import_module(next((one for one in others if find_spec(one)), last))
        found = {"version": getattr(module, "__version__", None)}
    except BaseException as error:
        found = {"error": f"{type(error).__name__}: {error}"}
    found["seconds"] = round(time.perf_counter() - began, 2)
    print(json.dumps({name: found}), flush=True)
"""


@dataclass(frozen=True, slots=True)
class TestbedFact:
    """What was found, or why not, in so many seconds."""

    name: str
    seconds: float
    found: dict[str, Any] = field(default_factory=dict)
    error: str = ""

    def to_json(self) -> str:
        """Give one line of JSON."""
        return json.dumps(asdict(self))


def list_facts(build: BuildRequest, scenario: Scenario, models: Path) -> Iterator[TestbedFact]:
    """Look at machine, driver, modules, code and one engine, each fact whatever the others are."""
    yield _fact("machine", _machine)
    if build.spec.accelerator == "cuda":
        yield _fact("driver", lambda: asdict(nvidia.driver()))
        yield _fact("gpus", _gpus)
    yield _fact("imports", lambda: _imports(build))
    yield _fact("code", lambda: _code(build))
    yield _fact("engine", lambda: _engine(build, scenario, models))


def _fact(name: str, look: Callable[[], dict[str, Any]]) -> TestbedFact:
    began = time.perf_counter()
    found: dict[str, Any] = {}
    error = ""
    try:
        found = look()
    except (HybridwatchError, OSError, subprocess.SubprocessError, httpx.HTTPError) as failure:
        error = f"{type(failure).__name__}: {failure}"
    return TestbedFact(name, round(time.perf_counter() - began, 2), found, error)


def _machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "kernel": platform.release(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "disk_free_bytes": shutil.disk_usage(tempfile.gettempdir()).free,
        "dev_shm_free_bytes": shutil.disk_usage("/dev/shm").free,  # noqa: S108 - not a temp file
    }


def _gpus() -> dict[str, Any]:
    devices = nvidia.devices()
    with nvidia.gauge(devices) as read:
        readings = read()
    return {
        device.uuid: {
            **asdict(device),
            "sm_clock_hz": reading.sm_clock_hz,
            "memory_clock_hz": reading.memory_clock_hz,
            "power_w": reading.power_w,
            "temperature_c": reading.temperature_c,
            "memory_used_bytes": reading.memory_used_bytes,
            "throttled": sorted(reading.throttled or ()),
        }
        for device, reading in zip(devices, readings, strict=True)
    }


def _imports(build: BuildRequest) -> dict[str, Any]:
    modules = (*_MODULES, _KERNELS)
    done = subprocess.run(
        python_command("-c", _IMPORTING, *modules, python=build.spec.interpreter),
        env=foreign_environment(),
        capture_output=True,
        text=True,
        timeout=_IMPORT_S,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    found = {name: one for line in lines for name, one in json.loads(line).items()}
    for name in modules:
        missing = found.get(name, {"error": f"ended with status {done.returncode} before"})
        if "error" in missing:
            raise BuildError(f"{build.spec.name}: import {name}: {missing['error']}")
    return found


def _code(build: BuildRequest) -> dict[str, Any]:
    check = check_build(build.spec)
    return {
        "distribution": check.distribution,
        "release": check.release,
        "fixes": {name: one.state for name, one in check.fixes.items()},
    }


def _engine(build: BuildRequest, scenario: Scenario, models: Path) -> dict[str, Any]:
    gpus = cuda_numbers(Gpus.of((build,)).devices)
    with (
        tempfile.TemporaryDirectory(prefix="hybridwatch-") as work,
        EnginePool(scenario, (build,), models, Path(work), lambda _: None, gpus) as pool,
    ):
        began = time.perf_counter()
        engine = pool.make_ready(0)
        up_s = time.perf_counter() - began
        body = {"model": scenario.model, "prompt": "a b c", "max_tokens": 4, "temperature": 0}
        url = f"{engine.server.url}/v1/completions"
        answer = httpx.post(url, json=body, timeout=_ANSWER_S, trust_env=False).raise_for_status()
        return {
            "scenario": scenario.id,
            "seconds_to_come_up": round(up_s, 2),
            "text": answer.json()["choices"][0]["text"],
            "flags": dict(pool.identify(0).flags),
        }
