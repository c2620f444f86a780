"""A mutant as patches: its targets in vLLM, found by their names, and the code that wraps them."""

import pkgutil
from collections.abc import Callable
from importlib import import_module
from inspect import signature
from typing import Any

from hybridwatch_engine.mutants.headers import MutantHeader
from hybridwatch_engine.mutants.tally import Tally
from hybridwatch_engine.own_module import load_own
from hybridwatch_engine.patch import Patch, PatchSet


def patches_of(header: MutantHeader, tally: Tally) -> PatchSet:
    """Make the patches that put a mutant in.

    Args:
        header: The mutant.
        tally: Counts what it does.

    Raises:
        ValueError: The header names code that its folder, or a target that this vLLM, lacks.
    """
    wrap = _code(header)

    def make(original: Any) -> Any:
        return wrap(original, tally, **header.parameters)

    return PatchSet(*(Patch(*_target(header, text), make) for text in header.target))


def _code(header: MutantHeader) -> Callable[..., Any]:
    """Find ``module.function``, and check that it takes the parameters."""
    module, _, name = header.by.partition(".")
    place = f"{header.file}.by"
    known = {one.name for one in pkgutil.iter_modules([str(header.folder)])}
    own = load_own(header.folder, module, place) if module in known else None
    wrap = getattr(own, name, None)
    if wrap is None:
        raise ValueError(f"{place}: expected module.function of {header.folder}, found {header.by}")
    try:
        signature(wrap).bind(None, tally=None, **header.parameters)
    except TypeError as error:
        raise ValueError(
            f"{header.file}.parameters: expected those of {header.by}, found "
            f"{dict(header.parameters)}: {error}"
        ) from None
    code: Callable[..., Any] = wrap
    return code


def _target(header: MutantHeader, text: str) -> tuple[Any, str]:
    """Find ``module:Class.function`` or ``module:function`` in vLLM."""
    module, _, path = text.partition(":")
    *owners, name = path.split(".")
    try:
        owner = import_module(f"vllm.{module}")
        for part in owners:
            owner = getattr(owner, part)
        getattr(owner, name)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"{header.file}.target: expected a function of this vLLM, found {text}: {error}"
        ) from None
    return owner, name
