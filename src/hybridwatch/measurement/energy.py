"""What the GPUs of an engine take while it is loaded, by the driver's own counter."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from hybridwatch.engines.gpu_layout import cuda_numbers
from hybridwatch.errors import GpuError, MeasurementError
from hybridwatch.system import nvidia


@contextmanager
def compute_joules(gpus: Sequence[str]) -> Iterator[Callable[[], float | None]]:
    """Give a function that reads a counter of joules, of which only differences mean something.

    Another engine on the same GPUs takes its share of it, idle or not: both sides of a session
    share theirs with the same ones. The function gives ``None`` where there is no GPU, or one that
    does not count.

    Raises:
        MeasurementError: The driver went away.
    """
    if not gpus:
        yield lambda: None
        return
    try:
        every = nvidia.devices()
        named = dict(zip(cuda_numbers(every), every, strict=True))
        with nvidia.energy_counter([named[gpu] for gpu in gpus]) as read:
            yield read
    except GpuError as error:
        raise MeasurementError(str(error)) from error
