"""What all probes that count have in common: counts from zero, and hooks while they are on."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hybridwatch_engine.patch import PatchSet

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

C = TypeVar("C", bound="DataclassInstance")


class CountingProbe(Generic[C]):
    """Adds up counts while it is on.

    Args:
        kind: Dataclass of the counts; all begin at zero.
    """

    def __init__(self, kind: type[C]) -> None:
        self._kind = kind
        self._counts = kind()
        self._hooks: PatchSet | None = None

    def start(self) -> None:
        """Count from zero."""
        self._counts = self._kind()
        self._forget()
        if self._hooks is None:
            self._hooks = self._make_hooks()
        self._hooks.install()

    def stop(self) -> dict[str, Any]:
        """Stop counting and tell."""
        if self._hooks is not None:
            self._hooks.remove()
        self._forget()
        return asdict(self._counts)

    def _make_hooks(self) -> PatchSet:
        """What has to be watched; made when the probe is first used, for it needs vLLM."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Let go of whatever belongs to the steps seen so far."""
