"""Host time spent building attention metadata, per engine step."""

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from hybridwatch_engine.patch import Patch, PatchSet


class MetadataTimeProbe:
    """Times ``GPUModelRunner._build_attention_metadata`` while it is on."""

    def __init__(self) -> None:
        self._times_ns: list[int] = []
        self._hooks: PatchSet | None = None

    def start(self) -> None:
        """Time from now on."""
        from vllm.v1.worker.gpu_model_runner import GPUModelRunner

        self._times_ns = []
        # Made anew each time, so that it goes round whatever fix is in place now.
        self._hooks = PatchSet(Patch(GPUModelRunner, "_build_attention_metadata", self._timed))
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
