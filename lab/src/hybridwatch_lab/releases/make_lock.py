"""Makes the lock of a release, for CPUs or for CUDA."""

from hybridwatch.errors import BuildError
from hybridwatch_lab.releases.locks import Heard, cpu_lock, cuda_lock, unheard
from hybridwatch_lab.releases.published import published


def make_lock(accelerator: str, release: str, heard: Heard = unheard) -> str:
    """Resolve what a release needs.

    Args:
        accelerator: ``cpu`` or ``cuda``.
        release: Its version.
        heard: Hears pip at work.

    Raises:
        BuildError: pip cannot; or for CUDA the index does not say when the release came out.
    """
    if accelerator == "cpu":
        return cpu_lock(release, heard)
    day = next((one.day_after for one in published(accelerator) if one.release == release), None)
    if day is None:
        raise BuildError(
            f"vllm {release}: expected an index that says when it came out (PEP 700), found none"
        )
    return cuda_lock(release, day, heard)
