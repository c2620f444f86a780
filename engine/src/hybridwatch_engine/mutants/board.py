"""Which mutant is on in this process."""

import pkgutil
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, Final, Literal

from hybridwatch_engine.mutants.tally import Tally
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.settings import from_environment, load_own

OWN: Final = "own"
"""The half of those that are the user's own."""
Process = Literal["worker", "scheduler"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MutantHeader:
    """One ``[mutant.<name>]`` table; the head of ``first.toml`` says what each key means.

    Attributes:
        file: Where the table stands, for messages.
        folder: Where its code lies.
    """

    name: str
    file: str
    folder: Path
    half: str = OWN
    mechanism: str
    target: tuple[str, ...]
    by: str
    resembles: str
    what: str
    process: Process = "worker"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    phase: str = "answers"
    equivalent: str = ""


_KEYS: Final = {
    one.name: one for one in fields(MutantHeader) if one.name not in {"name", "file", "folder"}
}


@cache
def mutant_headers() -> Mapping[str, MutantHeader]:
    """Give every mutant by its name, in the order of folders and files, the user's own last."""
    settings = from_environment()
    folders = (*settings.mutants, *settings.own_mutants)
    found: dict[str, MutantHeader] = {}
    for file in (file for folder in folders for file in sorted(folder.glob("*.toml"))):
        for name, keys in tomllib.loads(file.read_text(encoding="utf-8"))["mutant"].items():
            place = f"{file}: mutant.{name}"
            if name in found:
                raise ValueError(f"{place}: expected one table, found two")
            found[name] = header_from(name, keys, place, file.parent)
    return found


def header_from(name: str, keys: Mapping[str, Any], place: str, folder: Path) -> MutantHeader:
    """Make a header of what a table says."""
    if unknown := keys.keys() - _KEYS.keys():
        raise ValueError(f"{place}.{min(unknown)}: expected one of {', '.join(_KEYS)}")
    for key, one in _KEYS.items():
        if one.default is MISSING and one.default_factory is MISSING and key not in keys:
            raise ValueError(f"{place}.{key}: expected a value, found none")
    return MutantHeader(
        name=name, file=place, folder=folder, **{**keys, "target": tuple(keys["target"])}
    )


def patches_of(header: MutantHeader, tally: Tally) -> PatchSet:
    """Make the patches that put a mutant in.

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


class MutantBoard:
    """The mutants of one part of the engine, of which at most one is on."""

    def __init__(self, headers: Mapping[str, MutantHeader], process: Process) -> None:
        self._headers = headers
        self._process = process
        self._made: dict[str, PatchSet] = {}
        self._on: str | None = None
        self._tally = Tally()

    def switch(self, name: str | None) -> dict[str, Any]:
        """Have this mutant on from now on, counting from zero, and no other; None for none.

        Returns:
            ``error`` when there is no such mutant, or when it does not fit this plugin or this
            vLLM. Raising would end the engine; the caller decides what a refusal means.
        """
        try:
            patches = None if name is None else self._patches(name)
        except ValueError as error:
            return {"error": str(error)}
        if self._on is not None:
            self._made[self._on].remove()
        self._on = None if patches is None else name
        self._tally.clear()
        if patches is not None:
            patches.install()
        return {"mutant": name}

    def counts(self) -> dict[str, int]:
        """How often the code of the mutant that is on ran, and changed something."""
        return {"reached": self._tally.reached, "changed": self._tally.changed}

    def _patches(self, name: str) -> PatchSet | None:
        if name not in self._headers:
            known = ", ".join(self._headers)
            raise ValueError(f"no mutant {name!r} to switch on; known: {known}")
        if self._headers[name].process != self._process:
            return None
        if name not in self._made:
            self._made[name] = patches_of(self._headers[name], self._tally)
        return self._made[name]


@cache
def mutant_board(process: Process) -> MutantBoard:
    """The one of a part of the engine; with one process for all, both are in it."""
    return MutantBoard(mutant_headers(), process)
