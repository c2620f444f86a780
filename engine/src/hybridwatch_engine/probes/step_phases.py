"""Where the host's time of an engine step goes: prepare, metadata, forward, sample, draft, rest.

A phase's time is its own: what another phase takes inside it is that one's, so the phases of a step
add up to the step. On a GPU "forward" is the time to launch, and the phase that waits for the
device gets the device's time.
"""

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from hybridwatch_engine.model_runner import is_step, metadata_builds, phases_of_steps, steps
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
        """Stop timing and return ``seconds``, one value per build, in order."""
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


PHASES = ("prepare", "metadata", "forward", "sample", "draft", "rest")
"""In the order of a step; "rest" is the time of no other phase."""


class StepPhasesProbe:
    """Times the phases of every engine step while it is on.

    Args:
        clock: Returns the time, in nanoseconds.
    """

    def __init__(self, clock: Callable[[], int] = perf_counter_ns) -> None:
        self._clock = clock
        self._steps: list[dict[str, int]] = []
        self._running: list[str] = []
        self._since = 0
        self._hooks: PatchSet | None = None

    def start(self) -> None:
        """Time from now on."""
        self._steps, self._running = [], []
        # Made again each time, so that it goes round whatever fix is in place now.
        self._hooks = PatchSet(*_hooks(self))
        self._hooks.install()

    def stop(self) -> dict[str, dict[str, list[float]]]:
        """Stop timing and return ``phases``, by name the seconds of each step, in order."""
        if self._hooks is not None:
            self._hooks.remove()
        seconds = {phase: [step[phase] / 1e9 for step in self._steps] for phase in PHASES}
        return {"phases": seconds}

    def see_step(self, own: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Wrap what begins a step; the time that is no phase's goes to ``own``."""

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def execute_model(runner: Any, scheduled: Any, *args: Any, **kwargs: Any) -> Any:
                if not is_step(scheduled, kwargs):
                    return original(runner, scheduled, *args, **kwargs)
                self._steps.append(dict.fromkeys(PHASES, 0))
                return self._timed(own, original, runner, scheduled, *args, **kwargs)

            return execute_model

        return wrap

    def see_end(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap what ends a step, once its model has run."""

        def sample_tokens(*args: Any, **kwargs: Any) -> Any:
            if not self._steps:
                return original(*args, **kwargs)  # of a step that began before the probe was on
            return self._timed("rest", original, *args, **kwargs)

        return sample_tokens

    def see_phase(self, phase: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Wrap what belongs to a phase."""

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                if not self._running:
                    return original(*args, **kwargs)  # a dummy run: no step
                return self._timed(phase, original, *args, **kwargs)

            return call

        return wrap

    def _timed(self, phase: str, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self._settle()
        self._running.append(phase)
        try:
            return original(*args, **kwargs)
        finally:
            self._settle()
            self._running.pop()

    def _settle(self) -> None:
        """Credit the time since the last change to the phase that is running."""
        now = self._clock()
        if self._running:
            self._steps[-1][self._running[-1]] += now - self._since
        self._since = now


def _hooks(probe: StepPhasesProbe) -> list[Patch]:
    (v1, execute), (v2, _) = steps()
    found = [
        Patch(v1, execute, probe.see_step("rest")),
        Patch(v2, execute, probe.see_step("forward")),
    ]
    found += [Patch(runner, "sample_tokens", probe.see_end) for runner in (v1, v2)]
    for phase, functions in phases_of_steps().items():
        found += [Patch(*function, probe.see_phase(phase)) for function in functions]
    return found
