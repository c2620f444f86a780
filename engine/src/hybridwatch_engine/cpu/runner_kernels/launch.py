"""Launches of Triton kernels under its interpreter, by a stand-in where one fits the kernel.

A stand-in is found by the digest of a kernel's source and of the functions and constants that it
uses. vLLM has a registry of its own for this (``triton_utils/dispatcher.py``, from 0.31.0 on), but
by name alone and without the grid, so that neither a changed kernel nor a call that is not served
could go to the interpreter.
"""

import ast
import ctypes
import hashlib
import importlib
import inspect
import logging
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hybridwatch_engine.patch import Patch

Array = NDArray[Any]

LAUNCHES: Counter[tuple[str, str]] = Counter()
"""Launches by kernel and by what ran it: ``stand-in`` or ``interpreter``."""

MODULES: Final = ("drafts", "sampling", "states")
_STAND_INS: Final[dict[str, tuple[ModuleType, str, Mapping[str, Any]]]] = {}
"""Module, name and variant of a stand-in, by the digest of the kernel's source."""
_log = logging.getLogger(__name__)


class UnservedError(Exception):
    """A call that a stand-in leaves to the interpreter; raised before anything is written."""


def stands_in_for(*digests: str, **variant: Any) -> Callable[[Callable[..., None]], Any]:
    """Have a function run the kernels of these digests.

    It is called with ``grid`` and the kernel's arguments by their names, without a final ``_ptr``,
    tensors as arrays.

    Args:
        digests: First eight digits of each.
        variant: Arguments for the function, which differ between the kernels that it serves.
    """

    def note(function: Callable[..., None]) -> Callable[..., None]:
        place = (sys.modules[function.__module__], function.__name__, variant)
        _STAND_INS.update(dict.fromkeys(digests, place))
        return function

    return note


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel with its stand-in.

    Attributes:
        stand_in: Module, name and variant; None without one.
        defaults: Arguments that a launch may leave out.
    """

    stand_in: tuple[ModuleType, str, Mapping[str, Any]] | None
    defaults: Mapping[str, Any]

    def run(self, arguments: Mapping[str, Any], grid: tuple[int, ...]) -> bool:
        """Run the stand-in, if there is one, and return whether it served this call."""
        if self.stand_in is None:
            return False
        module, name, variant = self.stand_in
        named = {**self.defaults, **arguments, **variant}
        arrays = {key.removesuffix("_ptr"): _array(value) for key, value in named.items()}
        try:
            getattr(module, name)(grid=grid, **arrays)
        except UnservedError:
            return False
        return True


def stand_ins() -> Patch:
    """Let stand-ins run the kernels that they know, in a process that interprets Triton."""
    from triton.runtime.interpreter import InterpretedFunction

    for name in MODULES:
        importlib.import_module(f"{__package__}.{name}")
    return Patch(InterpretedFunction, "run", _run)


def _run(original: Callable[..., None]) -> Callable[..., None]:
    def run(kernel: Any, *args: Any, grid: Any, warmup: bool, **named: Any) -> None:
        found = None if warmup or kernel.pre_run_hooks or callable(grid) else find_kernel(kernel)
        if found is not None:
            names = kernel.arg_names
            more = {name: value for name, value in named.items() if name in names}
            arguments = {**dict(zip(names, args, strict=False)), **more}
            if found.run(arguments, grid):
                LAUNCHES[kernel.__name__, "stand-in"] += 1
                return
        LAUNCHES[kernel.__name__, "interpreter"] += 1
        original(kernel, *args, grid=grid, warmup=warmup, **named)

    return run


@cache
def find_kernel(kernel: Any) -> Kernel:
    """Find a kernel's stand-in and default arguments."""
    found = find_stand_in(kernel)
    if found is None:
        _log.info("Triton kernel %s is interpreted: nothing stands in for it", kernel.__name__)
    parameters = inspect.signature(kernel.fn).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}
    return Kernel(found, defaults)


def find_stand_in(kernel: Any) -> tuple[ModuleType, str, Mapping[str, Any]] | None:
    """Module, name and variant of a kernel's stand-in, if there is one."""
    return _STAND_INS.get(digest(kernel))


def digest(kernel: Any) -> str:
    """Digest of all that a kernel's outcome depends on, apart from comments and layout.

    That is the source which the interpreter itself would run; empty where there is none.
    """
    try:
        text = "\n".join(_sources(kernel, set()))
    except (OSError, SyntaxError):
        return ""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _sources(function: Any, seen: set[str]) -> Iterator[str]:
    """Sources of a kernel and of the functions it calls, and constants that these use."""
    code = function.fn
    tree = ast.parse(textwrap.dedent(inspect.getsource(code))).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise SyntaxError(f"{code.__name__} is no function")  # noqa: TRY004 - of its source
    tree.decorator_list = []
    if ast.get_docstring(tree) is not None:
        del tree.body[0]
    yield ast.unparse(tree)
    for name in sorted(set(code.__code__.co_names) - seen):
        value = code.__globals__.get(name)
        seen.add(name)
        if isinstance(value, type(function)):
            yield from _sources(value, seen)
        elif hasattr(value, "value"):  # tl.constexpr
            yield f"{name} = {value.value!r}"


def _array(value: Any) -> Any:
    """A tensor's memory as an array; as it is where NumPy has no such type (bfloat16)."""
    if not hasattr(value, "numpy"):
        return value
    try:
        return value.numpy()
    except TypeError:
        return value


def at_address(address: Any, count: int) -> Array:
    """The ``count`` integers of 32 bits in memory at an address."""
    memory: Any = (ctypes.c_int32 * count).from_address(int(address))
    return np.frombuffer(memory, np.int32)


def flat(array: Array) -> Array:
    """An array as a kernel sees it: flat.

    Raises:
        UnservedError: It is not contiguous, so this would be a copy.
    """
    if not array.flags.c_contiguous:
        raise UnservedError
    return array.reshape(-1)


def real(rows: Array) -> Array:
    """Rows of requests, if none is absent.

    Raises:
        UnservedError: One is absent (-1), which the kernel does not handle.
    """
    if (rows < 0).any():
        raise UnservedError
    return rows
