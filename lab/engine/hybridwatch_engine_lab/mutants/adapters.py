"""Mutants of adapters (LoRA) that requests name."""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.mutants.tally import Tally


def not_in_key(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Let the prefix cache know a block by its tokens, whatever adapter has made it."""

    def keys_of_adapter(request: Any) -> list[Any]:
        tally.count(changed=bool(original(request)))
        return []

    return keys_of_adapter
