"""Modules that stand for vLLM's, which only an engine's environment has."""

import sys
from types import ModuleType
from typing import Any

import pytest


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **content: Any) -> ModuleType:
    """Have a module with this content; packages above it come along where there are none."""
    above = name.rpartition(".")[0]
    if above and above not in sys.modules:
        stand_in(monkeypatch, above)
    module = ModuleType(name)
    vars(module).update(content, __path__=[])
    monkeypatch.setitem(sys.modules, name, module)
    return module
