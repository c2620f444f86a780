"""Host time spent building attention metadata, per engine step."""

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from hybridwatch_engine.model_runner import metadata_builds
from hybridwatch_engine.patch import Patch, PatchSet


class MetadataTimeProbe:
    """Times what builds attention metadata while it is on."""

    def __init__(self) -> None:
        self._times_ns: list[int] = []
        self._hooks: PatchSet | None = None

    def start(self) -> None:
        """Time from now on."""
        self._times_ns = []
        # Made again each time, so that it goes round whatever fix is in place now.
        self._hooks = PatchSet(*(Patch(*function, self._timed) for function in metadata_builds()))
        self._hooks.install()

    def stop(self) -> dict[str, list[float]]:
        """Stop and tell: ``seconds``, one value per build, in order."""
        if self._hooks is not None:
            self._hooks.remove()
        return {"seconds": [time / 1e9 for time in self._times_ns]}

    def _timed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def build(*args: Any, **kwargs: Any) -> Any:
            start = perf_counter_ns()
            try:
                return original(*args, **kwargs)
            finally:
                self._times_ns.append(perf_counter_ns() - start)

        return build
