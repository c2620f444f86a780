"""What all probes that count have in common: counts from zero, and hooks while they are on.

A probe looks on from inside the engine's step, at fields that another family of models or another
release may not have. So no look of its may fail the step: a probe that meets what it does not know
stops looking, and says of each of its counts why there is none. A count of 0 would claim that the
rule was kept.
"""

import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from hybridwatch_engine.patch import PatchSet

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

UNSUPPORTED: Final = "unsupported"
"""Key of what a probe could not watch: name of each count that is not known, with the reason."""


class Probe(Protocol):
    """Something that can watch for a while."""

    def start(self) -> None:
        """Begin from zero."""

    def stop(self) -> dict[str, Any]:
        """End, and hand out what was seen."""


class JointProbe:
    """Probes that watch together.

    Args:
        probes: The probes; no two of them count under one name.
    """

    def __init__(self, probes: Sequence[Probe]) -> None:
        self._probes = probes

    def start(self) -> None:
        """Let all of them begin from zero."""
        for probe in self._probes:
            probe.start()

    def stop(self) -> dict[str, Any]:
        """End all of them, the last one first, and hand out everything that was seen.

        Returns:
            Counts by name, and ``unsupported`` when there is something that one could not watch.
        """
        seen = [probe.stop() for probe in reversed(self._probes)]
        unsupported: dict[str, str] = {}
        for counts in reversed(seen):
            unsupported |= counts.pop(UNSUPPORTED, {})
        merged = {name: count for counts in reversed(seen) for name, count in counts.items()}
        return {**merged, UNSUPPORTED: unsupported} if unsupported else merged


C = TypeVar("C", bound="DataclassInstance")
R = TypeVar("R")


class UnsupportedError(Exception):
    """What this engine is made of is not what a probe knows how to watch; the text says why."""


class CountingProbe(Generic[C]):
    """Adds up counts while it is on."""

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
        """Stop counting and return the counts.

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
        """Call ``look``; an error in it ends this probe's counting, never the engine's step.

        Returns:
            The value of ``look``, ``None`` once counting has ended.
        """
        if self._unsupported is not None:
            return None
        try:
            return look(*args, **kwargs)
        except UnsupportedError as error:
            self._unsupported = str(error)
        except Exception as error:  # noqa: BLE001 - the engine must go on
            self._unsupported = _reason(error)
        return None

    def _make_hooks(self) -> PatchSet:
        """The hooks to install; made when the probe is first used, since they need vLLM."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Drop the state of the steps seen so far."""


def _reason(error: Exception) -> str:
    """An unforeseen error in one line, with the place that raised it."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text} ({Path(place.filename).name}:{place.lineno})"
