"""What all probes that count have in common: counts from zero, and hooks while they are on.

A probe looks on from inside the engine's step, at fields that another family of models or another
release may not have. So no look of its may fail the step: a probe that meets what it does not know
stops looking, and says of each of its counts why there is none. A count of 0 would claim that the
rule was kept.
"""

import traceback
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hybridwatch_engine.patch import PatchSet
from hybridwatch_engine.probes.joint import UNSUPPORTED

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

C = TypeVar("C", bound="DataclassInstance")
R = TypeVar("R")


class UnsupportedError(Exception):
    """What this engine is made of is not what a probe knows how to watch; the text says why."""


class CountingProbe(Generic[C]):
    """Adds up counts while it is on.

    Args:
        kind: Dataclass of the counts; all begin at zero.
    """

    def __init__(self, kind: type[C]) -> None:
        self._kind = kind
        self._counts = kind()
        self._hooks: PatchSet | None = None
        self._unsupported: str | None = None

    def start(self) -> None:
        """Count from zero."""
        self._counts = self._kind()
        self._unsupported = None
        self._forget()
        self._watch(self._install)

    def stop(self) -> dict[str, Any]:
        """Stop counting and tell.

        Returns:
            Each count by its name; or, when the engine could not be watched, ``unsupported`` alone:
            each count's name with the reason why it is not known.
        """
        if self._hooks is not None:
            self._hooks.remove()
        self._forget()
        if self._unsupported is not None:
            names = (field.name for field in fields(self._kind))
            return {UNSUPPORTED: dict.fromkeys(names, self._unsupported)}
        return asdict(self._counts)

    def _install(self) -> None:
        if self._hooks is None:
            self._hooks = self._make_hooks()
        self._hooks.install()

    def _watch(self, look: Callable[..., R], *args: Any, **kwargs: Any) -> R | None:
        """Look at something of the engine's; what a look raises ends the watch, never the step.

        Returns:
            What the look gives, ``None`` once the watch has ended.
        """
        if self._unsupported is not None:
            return None
        try:
            return look(*args, **kwargs)
        except UnsupportedError as error:
            self._unsupported = str(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the engine goes on
            self._unsupported = _reason(error)
        return None

    def _make_hooks(self) -> PatchSet:
        """What has to be watched; made when the probe is first used, for it needs vLLM."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Let go of whatever belongs to the steps seen so far."""


def _reason(error: Exception) -> str:
    """An unforeseen error in one line, with the place that raised it."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text} ({Path(place.filename).name}:{place.lineno})"
